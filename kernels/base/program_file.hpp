// The path of the program, beside which its other files are: the module that calls libtorch, the
// page of runs. An interpreter that has loaded Shoal as a module is not that program, so the module
// says where the program would be.
// Thread safety: set_program_file() only before other threads read.
#pragma once

#include <filesystem>

namespace shoal {

/// The executable of this process, or the path that set_program_file() was given. The file need not
/// exist. Empty if the system does not tell.
std::filesystem::path program_file();

void set_program_file(std::filesystem::path file);

} // namespace shoal
