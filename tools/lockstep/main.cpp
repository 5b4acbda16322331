#include "tools/lockstep/commands.h"

int main(int count, char** arguments) { return lockstep::tool::main_of(count, arguments); }
