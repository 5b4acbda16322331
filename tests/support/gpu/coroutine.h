#pragma once
#include <ucontext.h>

#include <csetjmp>
#include <functional>
#include <memory>
#include <vector>

namespace lockstep::testing {

/// Work on a stack of its own, that pauses and goes on. Its stack is there for the next work; switching calls no
/// kernel.
class Coroutine {
 public:
  /// Goes on with the work, or begins `work` where there is none. True at its end.
  bool resume(const std::function<void()>& work) {
    if (!works_) {
      works_ = true;
      work_ = &work;
    }
    auto* before = current_;
    current_ = this;
    if (_setjmp(host_) == 0) enter();
    current_ = before;
    return !works_;
  }

  /// Back to who called resume(); returns when called on. REQUIRES: within a coroutine's work.
  static void pause() {
    auto* own = current_;
    if (_setjmp(own->place_) == 0) _longjmp(own->host_, 1);
  }

 private:
  static constexpr size_t kStack = 64 << 10;

  [[noreturn]] void enter() {
    if (stack_) _longjmp(place_, 1);
    stack_ = std::make_unique<char[]>(kStack);
    ::getcontext(&first_);
    first_.uc_stack = {stack_.get(), 0, kStack};
    ::makecontext(&first_, &Coroutine::go_on, 0);
    ::setcontext(&first_);
    std::abort();
  }

  static void go_on() {
    for (;;) {
      (*current_->work_)();
      current_->works_ = false;
      pause();
    }
  }

  static inline Coroutine* current_ = nullptr;
  std::unique_ptr<char[]> stack_;
  const std::function<void()>* work_ = nullptr;
  bool works_ = false;
  ucontext_t first_{};
  jmp_buf place_, host_;
};

}  // namespace lockstep::testing
