// The meanings of the program's exit status.
#pragma once

namespace shoal::tools {

inline constexpr int exit_ok = 0;
inline constexpr int exit_bad_input = 1;  ///< a scenario, file or directory that cannot be used
inline constexpr int exit_usage = 2;      ///< the command line itself
inline constexpr int exit_run_failed = 3; ///< the run could not go on, or missed an expectation
inline constexpr int exit_interrupted =
    130; ///< ended early by Ctrl-C; 128 + SIGINT, as shells say it

} // namespace shoal::tools
