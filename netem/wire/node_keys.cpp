#include "netem/wire/node_keys.hpp"

#include "netem/wire/certificates.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/signing_key.hpp"

#include <fmt/format.h>

#include <utility>

namespace shoal::netem::wire {

namespace fs = std::filesystem;

namespace {

constexpr const char* admit_help =
    "the moderator makes it with 'shoal keys admit', for a node's name or request";

result<void> check_there(const fs::path& path, const char* help) {
  std::error_code error;
  // An existing file with a fault gets a better message when it is read.
  if (fs::exists(path, error) || error) return {};
  return failure{fmt::format("'{}' is missing: {}", path.string(), help)};
}

result<std::string> read_there(const fs::path& path) {
  if (auto there = check_there(path, admit_help); !there) return failure{there.error()};
  return read_trusted(path);
}

} // namespace

result<node_keys> load_node_keys(const fs::path& folder, std::int64_t utc_ns) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return failure{fmt::format(
        "'{}' is not a folder of keys: 'shoal keys request NAME -o DIR' makes a node's key, and {}",
        folder.string(), "'shoal keys admit' its certificate")};
  const fs::path key_path = folder / node_key_file,
                 certificate_path = folder / node_certificate_file;
  const fs::path ca_path = folder / swarm_certificate_file,
                 list_path = folder / revocation_list_file;
  if (auto there = check_there(
          key_path, "'shoal keys request NAME -o DIR' makes a key and a request to be admitted");
      !there)
    return failure{there.error()};
  node_keys out;
  auto secret = read_secret(key_path);
  if (!secret) return failure{secret.error()};
  out.key_pem = *std::move(secret);
  const auto key = signing_key::read(out.key_pem.view());
  if (!key) return in_file(key_path, "not a private key: " + key.error());
  const std::pair<const fs::path*, std::string*> files[] = {
      {&certificate_path, &out.certificate_pem},
      {&ca_path, &out.ca_pem},
      {&list_path, &out.crl_pem}};
  for (const auto& [path, text] : files) {
    auto found = read_there(*path);
    if (!found) return failure{found.error()};
    *text = *std::move(found);
  }
  const auto facts = read_certificate(out.certificate_pem);
  if (!facts) return in_file(certificate_path, facts.error());
  out.name = facts->name;
  if (facts->public_key != key->public_key())
    return in_file(
        key_path,
        fmt::format(
            "not the key of the certificate of '{}' beside it: one of them is another node's",
            facts->name));
  if (auto fine = check_moderator(out.ca_pem, utc_ns); !fine) return in_file(ca_path, fine.error());
  if (auto fine = check_issued(out.certificate_pem, out.ca_pem, utc_ns); !fine)
    return in_file(certificate_path, fine.error());
  const auto revoked = revocation_list::read(out.crl_pem, out.ca_pem);
  if (!revoked) return in_file(list_path, revoked.error());
  if (revoked->revoked(facts->serial))
    return in_file(certificate_path,
                   fmt::format("the certificate of '{}' is revoked; ask the moderator of '{}'",
                               facts->name, facts->issuer));
  return out;
}

} // namespace shoal::netem::wire
