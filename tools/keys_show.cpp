#include "tools/keys_show.hpp"

#include "kernels/base/text_fields.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator_folder.hpp"
#include "netem/wire/node_keys.hpp"
#include "netem/wire/signing_key.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using namespace netem::wire;

/// The moderator's certificate and revocation list, if they are beside the shown file.
struct neighbours {
  std::optional<std::string> ca_pem;
  std::optional<revocation_list> revoked;

  explicit neighbours(const fs::path& folder) {
    if (auto ca = read_text(folder / swarm_certificate_file)) ca_pem = *std::move(ca);
    if (auto list = read_text(folder / revocation_list_file); list && ca_pem)
      if (auto read = revocation_list::read(*list, *ca_pem)) revoked = *std::move(read);
  }
};

bool wrong(const fs::path& path, const std::string& why) {
  std::fflush(stdout); // stderr follows after this where both go to one file
  fmt::print(stderr, "{}: error: {}\n", path.string(), why);
  return false;
}

void line(const char* what, const std::string& text) {
  fmt::print("  {:<11} {}\n", what, text);
}

/// A remaining time in words.
std::string left(std::int64_t nanoseconds) {
  constexpr std::int64_t minute = 60'000'000'000, hour = 60 * minute, day = 24 * hour;
  const auto of = [&](std::int64_t unit, const char* name) {
    const std::int64_t count = nanoseconds / unit;
    return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
  };
  return nanoseconds >= 2 * day    ? of(day, "day")
         : nanoseconds >= 2 * hour ? of(hour, "hour")
                                   : of(minute, "minute");
}

std::string state_now(const std::string& pem, const certificate_facts& facts,
                      const neighbours& beside, std::int64_t utc_ns) {
  if (facts.moderator) {
    const auto fine = check_moderator(pem, utc_ns);
    return fine ? fmt::format("valid for another {}", left(facts.not_after_utc_ns - utc_ns))
                : "not valid: " + fine.error();
  }
  if (!beside.ca_pem) return "cannot be said: there is no swarm.crt beside it";
  if (const auto fine = check_issued(pem, *beside.ca_pem, utc_ns); !fine)
    return "not valid: " + fine.error();
  if (!beside.revoked) return "valid, if it is not revoked: there is no revoked.crl beside it";
  for (const auto& one : beside.revoked->entries())
    if (one.serial == facts.serial) return fmt::format("revoked at {}", utc_text(one.utc_ns));
  return fmt::format("valid for another {}", left(facts.not_after_utc_ns - utc_ns));
}

bool show_certificate(const fs::path& path, const std::string& pem, const neighbours& beside,
                      std::int64_t utc_ns) {
  const auto facts = read_certificate(pem);
  if (!facts) return wrong(path, facts.error());
  fmt::print("{}\n", path.string());
  line("certificate", facts->moderator ? fmt::format("moderator of '{}'", facts->name)
                                       : fmt::format("{} '{}', by the moderator of '{}'",
                                                     facts->operates ? "operator" : "node",
                                                     facts->name, facts->issuer));
  line("serial", facts->serial);
  line("public key", hex_of(facts->public_key));
  line("valid", fmt::format("from {} until {}", utc_text(facts->not_before_utc_ns),
                            utc_text(facts->not_after_utc_ns)));
  line("now", state_now(pem, *facts, beside, utc_ns));
  return true;
}

bool show_request(const fs::path& path, const std::string& pem) {
  const auto facts = read_request(pem);
  if (!facts) return wrong(path, facts.error());
  fmt::print("{}\n", path.string());
  line("request", fmt::format("of '{}', to be admitted", facts->name));
  line("public key", hex_of(facts->public_key));
  return true;
}

bool show_list(const fs::path& path, const std::string& pem, const neighbours& beside) {
  if (!beside.ca_pem)
    return wrong(path, "a revocation list, but there is no swarm.crt beside it to check it with");
  const auto list = revocation_list::read(pem, *beside.ca_pem);
  if (!list) return wrong(path, list.error());
  fmt::print("{}\n", path.string());
  line("revoked",
       fmt::format("list number {} of the moderator of '{}'", list->number(), list->issuer()));
  line("valid",
       fmt::format("from {} until there is a higher number", utc_text(list->from_utc_ns())));
  for (const auto& one : list->entries())
    line("", fmt::format("{} at {}", one.serial, utc_text(one.utc_ns)));
  if (list->entries().empty()) line("", "nobody is revoked");
  return true;
}

bool show_private_key(const fs::path& path) {
  // The file is read again, now with a check of its permissions.
  const auto secret = read_secret(path);
  if (!secret) return wrong(path, secret.error());
  const auto key = signing_key::read(secret->view());
  if (!key) return wrong(path, "not a private key: " + key.error());
  fmt::print("{}\n", path.string());
  line("private key", "Ed25519, which only its owner may read");
  line("public key", hex_of(key->public_key()));
  return true;
}

bool show_admitted(const fs::path& path, std::string_view csv, const neighbours& beside,
                   std::int64_t utc_ns) {
  const auto everybody = read_admitted(csv);
  if (!everybody) return wrong(path, everybody.error());
  fmt::print("{}\n", path.string());
  if (everybody->empty()) line("admitted", "nobody yet");
  std::size_t width = 4;
  for (const admission_record& one : *everybody) width = std::max(width, one.name.size());
  for (const admission_record& one : *everybody) {
    const char* state = beside.revoked && beside.revoked->revoked(one.serial) ? "revoked"
                        : utc_ns >= one.until_utc_ns                          ? "expired"
                        : utc_ns < one.from_utc_ns                            ? "not yet valid"
                                                                              : "valid";
    fmt::print("  {:<{}}  {}  until {}  {}\n", one.name, width, one.serial,
               utc_text(one.until_utc_ns), state);
  }
  return true;
}

bool show_file(const fs::path& path, std::int64_t utc_ns) {
  const auto text = read_wiped(path); // the text may be a key
  if (!text) return wrong(path, text.error());
  const std::string_view all = text->view();
  const auto holds = [&](const char* label) {
    return all.find(fmt::format("-----BEGIN {}-----", label)) != std::string_view::npos;
  };
  if (all.find("PRIVATE KEY-----") != std::string_view::npos) return show_private_key(path);
  const neighbours beside(path.has_parent_path() ? path.parent_path() : fs::path("."));
  if (holds("CERTIFICATE REQUEST")) return show_request(path, std::string(all));
  if (holds("CERTIFICATE")) return show_certificate(path, std::string(all), beside, utc_ns);
  if (holds("X509 CRL")) return show_list(path, std::string(all), beside);
  if (path.filename() == admitted_file) return show_admitted(path, all, beside, utc_ns);
  return wrong(path, "no key, request, certificate or revocation list");
}

bool show_folder(const fs::path& folder, std::int64_t utc_ns) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    const std::string extension = path.extension().string();
    const std::string name = path.filename().string();
    if (extension == ".key" || extension == ".crt" || extension == ".csr" || extension == ".crl" ||
        name == admitted_file)
      names.push_back(name);
  }
  if (error) return wrong(folder, fmt::format("cannot be read: {}", error.message()));
  if (names.empty()) return wrong(folder, "no keys and no certificates in this folder");
  std::sort(names.begin(), names.end());
  bool fine = true;
  for (const std::string& name : names) fine = show_file(folder / name, utc_ns) && fine;
  if (!fs::exists(folder / node_key_file, error))
    return fine; // a moderator's folder, or an answer on its way to a node
  const auto keys = load_node_keys(folder, utc_ns);
  if (!keys) return wrong(folder, "no node can be started with it: " + keys.error());
  fmt::print("{}: node '{}' can be started with it\n", folder.string(), keys->name);
  return fine;
}

} // namespace

bool show_keys(const fs::path& path, std::int64_t utc_ns) {
  std::error_code error;
  return fs::is_directory(path, error) ? show_folder(path, utc_ns) : show_file(path, utc_ns);
}

} // namespace shoal::tools
