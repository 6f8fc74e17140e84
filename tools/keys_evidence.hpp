// The members that a moderator revokes because of proofs: shoal keys revoke --evidence.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/moderator_folder.hpp"

#include <string>
#include <vector>

namespace shoal::tools {

struct convicted_member {
  std::string key;  ///< as in admitted.csv: 64 hexadecimal digits
  std::string name; ///< the name under which the moderator admitted the key
  std::string deed; ///< 'two votes in one round'
};

/// Reads proofs from a file, such as a node's bans.txt, or from one line, and checks each.
/// Errors: neither a file nor a proof; a proof that does not hold, or is of a simulation; a key
/// that this moderator has not admitted. The message names the line.
result<std::vector<convicted_member>>
members_convicted_by(const std::string& file_or_line,
                     const std::vector<netem::wire::admission_record>& admitted);

} // namespace shoal::tools
