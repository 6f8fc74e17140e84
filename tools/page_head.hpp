// The beginning of a page without scripts: its style, and the tag of its body.
#pragma once

#include <string>

namespace shoal::tools {

/// `title`: escaped for HTML.
std::string page_head(const std::string& title);

} // namespace shoal::tools
