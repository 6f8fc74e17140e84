// What a node is started with (`--keys DIR`): its key and certificate, whom it trusts, and who is
// revoked.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace shoal::netem::wire {

struct node_keys {
  std::string name;    ///< of the node, as its certificate says
  secret_text key_pem; ///< wiped when this goes
  std::string certificate_pem;
  std::string ca_pem; ///< the moderator's certificate, the only one that is trusted
  std::string crl_pem;
};

/// Reads and checks a node's folder at `utc_ns`. Errors, each naming the file and what to do: one
/// is missing or cannot be read, the key is not the node's alone or not the certificate's, and all
/// that check_issued() and revocation_list::read() refuse; the node's own certificate is revoked.
result<node_keys> load_node_keys(const std::filesystem::path& folder, std::int64_t utc_ns);

} // namespace shoal::netem::wire
