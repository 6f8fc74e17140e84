// The folders of a node and of a moderator: their files, their permissions, and the messages when a
// file is wrong.
#include "kernels/base/text_fields.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator_folder.hpp"
#include "netem/wire/node_keys.hpp"
#include "tests/netem/wire/swarm.hpp"
#include "tests/support/scratch_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::netem::wire;
namespace fs = std::filesystem;

namespace {

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777;
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// The valid folder of a node. Each test breaks something in it.
struct node_folder {
  scratch_folder scratch;
  fs::path path = scratch.path / "keys";
  moderator reef = new_moderator();
  signing_key key = signing_key::make();
  std::string certificate = admit(reef, "lab-3", key);

  node_folder() {
    auto folder = new_folder::create(path);
    REQUIRE(folder.ok());
    REQUIRE(folder->write(node_key_file, key.pem()).ok());
    REQUIRE(folder->write(node_certificate_file, certificate).ok());
    REQUIRE(folder->write(swarm_certificate_file, reef.certificate_pem()).ok());
    REQUIRE(folder->write(revocation_list_file, reef.first_list(now)).ok());
    REQUIRE(folder->commit().ok());
  }
  void put(std::string_view name, const std::string& text) const {
    REQUIRE(write_text(path / name, text).ok());
  }
  /// The error of load_node_keys(), with DIR for the folder; "" if there is none.
  std::string refusal(std::int64_t utc_ns = now) const {
    const auto loaded = load_node_keys(path, utc_ns);
    if (loaded) return "";
    std::string text = loaded.error();
    for (std::size_t at; (at = text.find(path.string())) != std::string::npos;)
      text.replace(at, path.string().size(), "DIR");
    return text;
  }
};

} // namespace

TEST_CASE("a node's folder is loaded whole") {
  const node_folder node;
  const auto keys = load_node_keys(node.path, now);
  REQUIRE(keys.ok());
  CHECK(keys->name == "lab-3");
  CHECK(signing_key::read(keys->key_pem.view())->public_key() == node.key.public_key());
  CHECK(keys->certificate_pem == node.certificate);
  CHECK(keys->ca_pem == node.reef.certificate_pem());
  CHECK(revocation_list::read(keys->crl_pem, keys->ca_pem)->number() == 1);
  CHECK(mode_of(node.path) == 0700);
  CHECK(mode_of(node.path / "node.key") == 0600);
}

TEST_CASE("a missing file is named with the command that makes it") {
  const node_folder node;
  const std::string admit_makes =
      "the moderator makes it with 'shoal keys admit', for a node's name or request";
  for (const char* name : {"node.crt", "swarm.crt", "revoked.crl"}) {
    const std::string text = slurp(node.path / name);
    fs::remove(node.path / name);
    CHECK(node.refusal() == fmt::format("'DIR/{}' is missing: {}", name, admit_makes));
    fs::create_directory(node.path / name);
    CHECK(node.refusal() == fmt::format("'DIR/{}' is not a file", name));
    fs::remove(node.path / name);
    node.put(name, text);
  }
  CHECK(node.refusal() == "");
  fs::remove(node.path / "node.key");
  CHECK(node.refusal() == "'DIR/node.key' is missing: 'shoal keys request NAME -o DIR' makes a key "
                          "and a request to be admitted");
  fs::remove_all(node.path);
  CHECK(node.refusal() ==
        "'DIR' is not a folder of keys: 'shoal keys request NAME -o DIR' makes a node's key, "
        "and 'shoal keys admit' its certificate");
}

TEST_CASE("a key that group or others may read is refused with its mode") {
  const node_folder node;
  for (const unsigned mode : {0644U, 0640U, 0604U, 0620U, 0602U, 0610U, 0777U}) {
    ::chmod((node.path / "node.key").c_str(), mode);
    CHECK(node.refusal() ==
          fmt::format("'DIR/node.key' is a secret, and its mode {:04o} lets others in; "
                      "'chmod 600 DIR/node.key' makes it yours alone",
                      mode));
  }
  for (const unsigned mode : {0600U, 0400U}) {
    ::chmod((node.path / "node.key").c_str(), mode);
    CHECK(node.refusal() == "");
  }
  // A symbolic link has the permissions of its target.
  fs::rename(node.path / "node.key", node.path / "elsewhere");
  ::chmod((node.path / "elsewhere").c_str(), 0644);
  fs::create_symlink("elsewhere", node.path / "node.key");
  CHECK(has(node.refusal(), "mode 0644"));
}

TEST_CASE("a certificate or a list that others may write is refused with its mode") {
  const node_folder node;
  for (const char* name : {"node.crt", "swarm.crt", "revoked.crl"}) {
    for (const unsigned mode : {0664U, 0646U, 0666U}) {
      ::chmod((node.path / name).c_str(), mode);
      CHECK(node.refusal() ==
            fmt::format("'DIR/{0}' decides whom this program trusts, and its mode {1:04o} lets "
                        "others write it; 'chmod go-w DIR/{0}' prevents that",
                        name, mode));
    }
    ::chmod((node.path / name).c_str(), 0644);
    CHECK(node.refusal() == "");
  }
}

TEST_CASE("a key or a certificate of another user is refused") {
  if (::geteuid() != 0) return; // only root can make such files
  const node_folder node;
  for (const char* name : {"node.key", "swarm.crt", "revoked.crl"}) {
    const auto path = node.path / name;
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
    CHECK(has(node.refusal(), fmt::format("'DIR/{}' belongs to another user", name)));
    REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  }
  CHECK(node.refusal() == "");
}

TEST_CASE("files that do not belong together are refused") {
  const node_folder node;
  const moderator lagoon = new_moderator("lagoon");
  const signing_key other = signing_key::make();
  node.put("node.crt", admit(node.reef, "lab-4", other));
  CHECK(node.refusal() == "'DIR/node.key': not the key of the certificate of 'lab-4' beside it: "
                          "one of them is another node's");
  node.put("node.crt", admit(lagoon, "lab-3", node.key));
  CHECK(node.refusal() == "'DIR/node.crt': the certificate of 'lab-3' was issued by the moderator "
                          "of 'lagoon', not by that of 'reef'");
  node.put("swarm.crt", lagoon.certificate_pem());
  CHECK(node.refusal() ==
        "'DIR/revoked.crl': the revocation list is that of 'reef', not of 'lagoon'");
  node.put("swarm.crt", admit(node.reef, "lab-4", other));
  CHECK(node.refusal() ==
        "'DIR/swarm.crt': the certificate of 'lab-4' is not a moderator's: it may not issue any");
  node.put("swarm.crt", node.reef.certificate_pem());
  node.put("node.crt", "hello\n");
  CHECK(node.refusal() ==
        "'DIR/node.crt': not a certificate: no PEM block: expected '-----BEGIN CERTIFICATE-----'");
  node.put("node.crt", node.certificate);
  CHECK(node.refusal() == "");
  CHECK(node.refusal(after(30 * day - 1s)) == "");
  CHECK(node.refusal(after(30 * day)) == "'DIR/node.crt': the certificate of 'lab-3' expired at "
                                         "2026-12-21T21:00:00Z; it is 2026-12-21T21:00:00Z");
  CHECK(has(node.refusal(after(-10min)), "'DIR/swarm.crt': the moderator's certificate of 'reef' "
                                         "is not valid before 2026-11-21T20:55:00Z"));
  const auto first = read_list(node.reef, node.reef.first_list(now));
  node.put("revoked.crl",
           *node.reef.revoke(first, std::vector{read_certificate(node.certificate)->serial}, now));
  CHECK(node.refusal() ==
        "'DIR/node.crt': the certificate of 'lab-3' is revoked; ask the moderator of 'reef'");
  ::truncate((node.path / "node.key").c_str(), 40);
  CHECK(node.refusal() ==
        "'DIR/node.key': not a private key: a damaged PEM block: expected a PRIVATE KEY");
}

TEST_CASE("a refusal never shows the key") {
  const node_folder node;
  const std::string text = slurp(node.path / "node.key");
  const std::string secret = text.substr(text.find('\n') + 1, 60);
  for (std::size_t size = 0; size < text.size(); size += 7) {
    ::truncate((node.path / "node.key").c_str(), static_cast<off_t>(size));
    CHECK_FALSE(has(node.refusal(), secret.substr(0, 12)));
  }
}

TEST_CASE("a pipe or a huge file in the place of a key is neither waited for nor read") {
  const node_folder node;
  fs::remove(node.path / "node.crt");
  REQUIRE(::mkfifo((node.path / "node.crt").c_str(), 0600) == 0);
  CHECK(node.refusal() == "'DIR/node.crt' is not a file");
  fs::remove(node.path / "node.crt");
  node.put("node.crt", "");
  REQUIRE(::truncate((node.path / "node.crt").c_str(), off_t{1} << 32) == 0);
  CHECK(node.refusal() == "'DIR/node.crt' has 4294967296 bytes; a key file has at most 16777216");
}

TEST_CASE(
    "a new folder appears whole or not at all and its secrets are never readable for others") {
  const scratch_folder scratch;
  const fs::path path = scratch.path / "a/b/keys";
  {
    auto folder = new_folder::create(path.string() + "/");
    REQUIRE(folder.ok());
    const ::mode_t before = ::umask(0);
    CHECK(folder->write("secret", secret_text(std::string_view("x"))).ok());
    CHECK(folder->write("public", std::string_view("y")).ok());
    ::umask(before);
    CHECK_FALSE(folder->write("public", std::string_view("z")).ok());
    CHECK_FALSE(fs::exists(path));
    const fs::path partial = fs::directory_iterator(path.parent_path())->path();
    CHECK((mode_of(partial) == 0700 && mode_of(partial / "secret") == 0600 &&
           mode_of(partial / "public") == 0644));
  }
  CHECK(entries_of(path.parent_path()) == 0); // dropped without commit()
  fs::create_directory(path);
  auto folder = new_folder::create(path);
  REQUIRE(folder.ok()); // an empty folder may be replaced
  CHECK(folder->write("secret", secret_text(std::string_view("x"))).ok());
  CHECK(folder->commit().ok());
  CHECK((mode_of(path) == 0700 && slurp(path / "secret") == "x" &&
         entries_of(path.parent_path()) == 1));
  CHECK(new_folder::create(path).error() ==
        fmt::format("'{}' exists and is not empty; name a folder that does not exist yet",
                    path.string()));
  CHECK(has(new_folder::create(path / "secret").error(), "exists and is not a folder"));
  CHECK(has(new_folder::create(path / "secret/deeper").error(), "Not a directory"));
  CHECK(has(new_folder::create(".").error(), "not empty"));
}

TEST_CASE("a file is replaced as a whole, and stays if the new one cannot be written") {
  const scratch_folder scratch;
  const fs::path file = scratch.path / "list";
  REQUIRE(write_text(file, "one").ok());
  scratch.write("list.partial", "left by a program that was killed");
  CHECK(write_text(file, "two").ok());
  CHECK((slurp(file) == "two" && entries_of(scratch.path) == 1 && mode_of(file) == 0644));
  fs::create_directories(scratch.path / "list.partial/full");
  CHECK_FALSE(write_text(file, "three").ok());
  CHECK(slurp(file) == "two");
}

TEST_CASE("a moderator admits and renews and revokes nodes and its folder records all of it") {
  const scratch_folder scratch;
  const fs::path path = scratch.path / "reef";
  REQUIRE(moderator_folder::make(path, "reef", now, 365 * day).ok());
  CHECK(
      (mode_of(path) == 0700 && mode_of(path / "moderator.key") == 0600 && entries_of(path) == 4));
  CHECK(slurp(path / "admitted.csv") == "name,serial,from,until,key\n");
  const signing_key key = signing_key::make();
  std::string first, second;
  {
    auto folder = moderator_folder::open(path, now);
    REQUIRE(folder.ok());
    first = *folder->admit("lab-3", key.public_key(), now, day);
    second = *folder->admit("lab-3", key.public_key(), now, 30 * day);
    CHECK(folder->admit("LAB-3", key.public_key(), now, day).error() ==
          "'LAB-3' differs from 'lab-3', an admitted node, only in capitals: TLS takes them for "
          "the same");
    CHECK_FALSE(folder->admit("reef", key.public_key(), now, day).ok());
  }
  const std::string a = read_certificate(first)->serial, b = read_certificate(second)->serial;
  CHECK(slurp(path / "admitted.csv") ==
        fmt::format("name,serial,from,until,key\n"
                    "lab-3,{},2026-11-21T20:55:00Z,2026-11-22T21:00:00Z,{}\n"
                    "lab-3,{},2026-11-21T20:55:00Z,2026-12-21T21:00:00Z,{}\n",
                    a, hex_of(key.public_key()), b, hex_of(key.public_key())));
  {
    auto folder = moderator_folder::open(path, now);
    REQUIRE(folder.ok());
    CHECK(folder->everybody().size() == 2);
    CHECK(folder->revoke({a}, now).ok());
    CHECK((folder->revoked().number() == 2 && folder->revoked().revoked(a) &&
           !folder->revoked().revoked(b)));
  }
  const auto folder = moderator_folder::open(path, now);
  REQUIRE(folder.ok());
  CHECK((folder->revoked().number() == 2 && folder->revoked().revoked(a)));
  CHECK(check_issued(second, folder->keys().certificate_pem(), now).ok());
}

TEST_CASE("a moderator's folder that is incomplete or damaged or readable by others or expired is "
          "refused") {
  const scratch_folder scratch;
  const fs::path path = scratch.path / "reef", other = scratch.path / "other";
  REQUIRE(moderator_folder::make(path, "reef", now, 365 * day).ok());
  REQUIRE(moderator_folder::make(other, "reef", now, 365 * day).ok());
  const auto refusal = [&](std::int64_t utc_ns = now) {
    const auto opened = moderator_folder::open(path, utc_ns);
    return opened ? std::string() : opened.error();
  };
  CHECK(refusal() == "");
  CHECK(has(refusal(after(366 * day)),
            "the moderator's certificate of 'reef' expired at 2027-11-21T21:00:00Z"));
  ::chmod((path / "moderator.key").c_str(), 0640);
  CHECK(has(refusal(), "its mode 0640 lets others in; 'chmod 600 "));
  ::chmod((path / "moderator.key").c_str(), 0600);
  fs::rename(path / "revoked.crl", path / "kept");
  CHECK(has(refusal(),
            "is not a moderator's folder: it has no revoked.crl; 'shoal keys init DIR' makes one"));
  fs::copy(other / "revoked.crl", path / "revoked.crl");
  CHECK(has(refusal(),
            "revoked.crl': the revocation list is not signed by this moderator of 'reef'"));
  fs::rename(path / "kept", path / "revoked.crl");
  fs::rename(path / "swarm.crt", path / "kept");
  fs::copy(other / "swarm.crt", path / "swarm.crt");
  CHECK(has(refusal(), "the key is not that of the moderator's certificate of 'reef'"));
  fs::rename(path / "kept", path / "swarm.crt");
  std::ofstream(path / "admitted.csv", std::ios::app) << "lab-3,ab";
  CHECK(has(refusal(), "admitted.csv': line 2: cut off"));
}

TEST_CASE("programs that admit nodes at the same time lose no node") {
  const scratch_folder scratch;
  const fs::path path = scratch.path / "reef";
  REQUIRE(moderator_folder::make(path, "reef", now, 365 * day).ok());
  const public_key_bytes key = signing_key::make().public_key();
  constexpr int programs = 4, nodes = 20;
  std::vector<pid_t> children;
  for (int program = 0; program < programs; ++program) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      bool fine = true;
      for (int node = 0; node < nodes; ++node) {
        auto folder = moderator_folder::open(path, now);
        fine = fine && folder.ok() &&
               folder->admit(fmt::format("n-{}-{}", program, node), key, now, day).ok();
      }
      ::_exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  CHECK(moderator_folder::open(path, now)->everybody().size() == programs * nodes);
}
