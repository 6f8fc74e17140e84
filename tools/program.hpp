// The program `shoal` as a function. A program outside of this tree registers definitions of its
// own and calls it: docs/extending.md.
#pragma once

namespace shoal::tools {

/// Runs the subcommand that the arguments name. Returns the exit code of the process.
/// Requires: all registrations are over; it is called once.
int run_program(int argc, char** argv);

} // namespace shoal::tools
