// A main that runs before Catch2's own. Catch2's is in its library, compiled (to compile it again takes ten seconds),
// so the linker puts ours in front: --wrap=main, which the target catch_main brings along.
#pragma once

extern "C" {

/// To be defined: where the program starts.
int __wrap_main(int argc, char** argv);
/// Catch2's command line: runs the tests of this program. Returns the exit status.
int __real_main(int argc, char** argv);
}
