// The parts of a node id of this program: a member and an incarnation.
#pragma once

#include <caf/node_id.hpp>

namespace shoal::actors {

/// Null for an empty id, and for an id of another kind. A kind is compared as a number, because a
/// dynamic_cast takes longer than all else that an id is asked for.
inline const caf::node_id::default_data* data_of(const caf::node_id& node) noexcept {
  return node && node->implementation_id() == caf::node_id::default_data::class_id
             ? static_cast<const caf::node_id::default_data*>(&*node)
             : nullptr;
}

} // namespace shoal::actors
