// Rules for the records of each kind of key. They limit how long a record lives, and whether an
// owner may have several under the key. They also say what a sub-key names. Replicas and readers
// apply the rules alike, so a record that breaks one reaches nobody.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shoal::actors {

struct record_rule {
  /// The peer is the one at the record's address, 16 hexadecimal digits in `peer`.
  enum class subkey : std::uint8_t { any, peer, ends_with_peer };

  /// A record that ends later than this, from now, is refused: its owner's word would outlast the
  /// owner for too long.
  duration max_lifetime{};
  /// Under such a key the owner's last record replaces the one before, whatever their sub-keys.
  bool one_per_owner = false;
  subkey form = subkey::any;
};

const record_rule& rule_of(std::string_view key);

/// True if the sub-key may stand for `peer`, whose address the record has.
bool is_subkey_of(record_rule::subkey form, std::string_view subkey, peer_id peer);

} // namespace shoal::actors
