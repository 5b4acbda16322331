#pragma once

namespace lockstep {

/// For the length of a scope, a draw outside of every module is BadInput: its stream counts the draws of a microbatch,
/// which are not all made in one place there.
class NamedDraws {
 public:
  NamedDraws();
  ~NamedDraws();
  NamedDraws(const NamedDraws&) = delete;
  NamedDraws& operator=(const NamedDraws&) = delete;

 private:
  bool previous_;
};

}  // namespace lockstep
