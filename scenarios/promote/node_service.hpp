// The systemd unit of a node, with words like @NODE@ to fill in. Its text is node.service, which
// the Debian package of the program has as well.
#pragma once

#include <string_view>

namespace shoal::scenarios {

std::string_view node_service();

} // namespace shoal::scenarios
