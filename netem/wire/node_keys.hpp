// The files that a node starts with (`--keys DIR`): its key and certificate, the moderator's
// certificate, and the revocation list.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace shoal::netem::wire {

struct node_keys {
  std::string name;    ///< the node's name in its certificate
  secret_text key_pem; ///< wiped at destruction
  std::string certificate_pem;
  std::string ca_pem; ///< the moderator's certificate, the only trusted one
  std::string crl_pem;
};

/// Reads and checks a node's folder at `utc_ns`. Each error names the file and the remedy.
/// Errors: a file is missing or cannot be read; the key is readable for others.
/// Errors: the key does not belong to the certificate; the node's own certificate is revoked.
/// Errors: as check_issued() and revocation_list::read().
result<node_keys> load_node_keys(const std::filesystem::path& folder, std::int64_t utc_ns);

} // namespace shoal::netem::wire
