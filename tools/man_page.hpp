// Manual pages for man(1), in the macros of man(7).
#pragma once

#include "tools/command_tree.hpp"

#include <string>
#include <string_view>

namespace shoal::tools {

/// The name of the page of a command: 'shoal-bench-averaging'.
std::string man_page_name(const listed_command& of);

/// The page of `command`, which is in `tree`. `version` is that of the program.
std::string man_page(const listed_command& command, std::string_view version);

} // namespace shoal::tools
