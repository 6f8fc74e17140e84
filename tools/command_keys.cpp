// shoal keys init, request, admit, revoke, show, verify: the certificates of the hosts that may
// join a swarm of real hosts. docs/security.md describes them.
#include "kernels/base/units.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator_folder.hpp"
#include "netem/wire/signed_text.hpp"
#include "scenarios/runner/node.hpp"
#include "scenarios/schema/diagnostic.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/keys_evidence.hpp"
#include "tools/keys_show.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using namespace netem::wire;

struct keys_arguments {
  std::string who, moderator, out, swarm = "swarm", valid, ca, evidence;
  bool operates = false;
  std::vector<std::string> paths;
};

std::int64_t utc_now() {
  return std::chrono::duration_cast<duration>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The value of --valid, or `standard` without it. Prints the error on stderr, if there is one.
std::optional<duration> validity(const keys_arguments& arguments, const char* standard) {
  const std::string text = arguments.valid.empty() ? standard : arguments.valid;
  const auto read = parse_duration(text);
  if (read && *read >= std::chrono::seconds(1)) return *read;
  fmt::print(stderr, "error: --valid: {}\n",
             read ? fmt::format("{} is too short: at least 1s", text) : read.error());
  return std::nullopt;
}

std::string count_of(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

int init(const keys_arguments& arguments) {
  const auto valid = validity(arguments, "365d");
  if (!valid) return exit_usage;
  const std::int64_t now = utc_now();
  const auto made = moderator_folder::make(arguments.out, arguments.swarm, now, *valid);
  if (!made) return fail(made.error());
  fmt::print("{}: the moderator of swarm '{}', until {}\n", arguments.out, arguments.swarm,
             utc_text(now + valid->count()));
  fmt::print("  moderator.key  its holder may admit any node: keep it off the nodes, and a copy in "
             "a safe place\n");
  fmt::print("next: 'shoal keys admit NAME --moderator {} -o DIR', or with the request that a "
             "volunteer sends\n",
             arguments.out);
  return exit_ok;
}

int request(const keys_arguments& arguments) {
  if (const auto fine = check_name(arguments.who); !fine) return fail(fine.error());
  auto folder = new_folder::create(arguments.out);
  if (!folder) return fail(folder.error());
  const signing_key key = signing_key::make();
  const std::string file = arguments.who + ".csr";
  auto done = folder->write(node_key_file, key.pem());
  if (done) done = folder->write(file, make_request(arguments.who, key));
  if (done) done = folder->commit();
  if (!done) return fail(done.error());
  const std::string request_path = (fs::path(arguments.out) / file).string();
  fmt::print("{}: the key of '{}', which stays on this machine, and its request\n", arguments.out,
             arguments.who);
  fmt::print("next: send {} to the moderator, and put the files that come back into {}\n",
             request_path, arguments.out);
  return exit_ok;
}

/// Prints which earlier certificates of that name stay valid beside a new one.
void print_renewal(const moderator_folder& folder, const admission_record& made, std::int64_t now) {
  std::vector<const admission_record*> valid;
  std::size_t earlier = 0;
  for (const admission_record& one : folder.everybody()) {
    if (one.name != made.name || one.serial == made.serial) continue;
    ++earlier;
    if (one.until_utc_ns > now && !folder.revoked().revoked(one.serial)) valid.push_back(&one);
  }
  if (earlier == 0) return;
  fmt::print("note: '{}' was admitted before; {}\n", made.name,
             valid.empty() ? "none of its earlier certificates is valid any more" : "also valid:");
  for (const admission_record* one : valid)
    fmt::print("  {} until {}\n", one->serial, utc_text(one->until_utc_ns));
  if (!valid.empty()) fmt::print("  'shoal keys revoke SERIAL' ends one before its time\n");
}

bool is_request(const std::string& who) {
  return who.ends_with(".csr") || who.find('/') != std::string::npos;
}

/// Whether this is the folder of the node's own key, on the same machine. The answer to a request
/// may go there directly.
bool is_folder_of(const fs::path& request, const fs::path& folder) {
  std::error_code error;
  const fs::path own = request.has_parent_path() ? request.parent_path() : fs::path(".");
  return fs::equivalent(own, folder, error) && fs::exists(folder / node_key_file, error);
}

int admit(const keys_arguments& arguments) {
  const auto valid = validity(arguments, "30d");
  if (!valid) return exit_usage;
  const std::int64_t now = utc_now();
  request_facts who{arguments.who, {}};
  std::optional<signing_key> key;
  if (is_request(arguments.who)) {
    const auto text = read_text(arguments.who);
    if (!text) return fail(text.error());
    const auto read = read_request(*text);
    if (!read) return fail(fmt::format("'{}': {}", arguments.who, read.error()));
    who = *read;
  } else {
    key = signing_key::make();
    who.public_key = key->public_key();
  }
  auto folder = moderator_folder::open(arguments.moderator, now);
  if (!folder) return fail(folder.error());
  // The output folder is opened before a certificate is issued, so that no issued one is lost.
  std::optional<new_folder> out;
  if (key || !is_folder_of(arguments.who, arguments.out)) {
    auto made = new_folder::create(arguments.out);
    if (!made) return fail(made.error());
    out.emplace(*std::move(made));
  }
  const auto pem = folder->admit(who.name, who.public_key, now, *valid, arguments.operates);
  if (!pem) return fail(pem.error());
  const auto put = [&](std::string_view name, const std::string& text) {
    return out ? out->write(name, text) : write_text(fs::path(arguments.out) / name, text);
  };
  result<void> done;
  if (key) done = out->write(node_key_file, key->pem());
  if (done) done = put(swarm_certificate_file, folder->keys().certificate_pem());
  if (done) done = put(revocation_list_file, folder->revoked().pem());
  if (done) done = put(node_certificate_file, *pem);
  if (done && out) done = out->commit();
  if (!done) return fail(done.error(), exit_run_failed);
  const admission_record& made = folder->everybody().back();
  fmt::print("{}: '{}' is admitted to '{}'{} until {}, serial {}\n", arguments.out, made.name,
             folder->keys().facts().name, arguments.operates ? " as an operator" : "",
             utc_text(made.until_utc_ns), made.serial);
  if (made.until_utc_ns < now + valid->count() - 1'000'000'000)
    fmt::print("note: not for {}: the moderator's own certificate ends then\n", to_string(*valid));
  print_renewal(*folder, made, now);
  if (key)
    fmt::print("next: move the folder to the node, for it alone to read: it has the node's key\n");
  else if (out)
    fmt::print(
        "next: send the files to '{}', who puts them beside its key; none of them is secret\n",
        made.name);
  return exit_ok;
}

/// Certificates to revoke, and what to say about them.
struct to_revoke {
  std::vector<std::string> names; ///< the owners of the certificates
  std::vector<std::string> serials;
  std::size_t before = 0; ///< certificates that were revoked before

  template <class Matches>
  to_revoke(const moderator_folder& folder, Matches matches) {
    for (const admission_record& one : folder.everybody()) {
      if (!matches(one)) continue;
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
      if (folder.revoked().revoked(one.serial))
        ++before;
      else
        serials.push_back(one.serial);
    }
  }
};

int revoke(const keys_arguments& arguments, moderator_folder& folder, const to_revoke& what) {
  const auto whose = fmt::format("'{}'", fmt::join(what.names, "', '"));
  if (what.serials.empty()) {
    fmt::print("{} of {} {} revoked before; nothing changed\n",
               count_of(what.before, "certificate"), whose, what.before == 1 ? "was" : "were");
    return exit_ok;
  }
  if (const auto done = folder.revoke(what.serials, utc_now()); !done) return fail(done.error());
  fmt::print("{} of {} {} revoked{}\n", count_of(what.serials.size(), "certificate"), whose,
             what.serials.size() == 1 ? "is" : "are",
             what.before > 0
                 ? fmt::format("; {} {} before", what.before, what.before == 1 ? "was" : "were")
                 : "");
  fmt::print("{}: revocation list number {}, with {}\n",
             (fs::path(arguments.moderator) / revocation_list_file).string(),
             folder.revoked().number(), count_of(folder.revoked().entries().size(), "certificate"));
  fmt::print(
      "next: put it into the nodes' folders: a node that has an older list still lets {} in\n",
      whose);
  return exit_ok;
}

int revoke_by_evidence(const keys_arguments& arguments, moderator_folder& folder) {
  const auto convicted = members_convicted_by(arguments.evidence, folder.everybody());
  if (!convicted) return fail("--evidence: " + convicted.error());
  for (const auto& each : *convicted)
    fmt::print("'{}' is guilty of {}: the proof holds\n", each.name, each.deed);
  return revoke(arguments, folder, to_revoke(folder, [&](const admission_record& one) {
                  return std::any_of(convicted->begin(), convicted->end(),
                                     [&](const auto& each) { return each.key == one.key; });
                }));
}

int revoke(const keys_arguments& arguments) {
  if (arguments.who.empty() == arguments.evidence.empty())
    return fail("give the name or the serial of a node, or a proof with --evidence", exit_usage);
  auto folder = moderator_folder::open(arguments.moderator, utc_now());
  if (!folder) return fail(folder.error());
  if (!arguments.evidence.empty()) return revoke_by_evidence(arguments, *folder);
  // 'openssl x509 -serial' and other tools write serials in capitals or with colons.
  std::string serial;
  for (char c : arguments.who)
    if (c != ':') serial += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const to_revoke what(*folder, [&](const admission_record& one) {
    return one.name == arguments.who || one.serial == serial;
  });
  if (!what.names.empty()) return revoke(arguments, *folder, what);
  std::vector<std::string> names;
  for (const admission_record& one : folder->everybody()) names.push_back(one.name);
  return fail(fmt::format(
      "no node with the name or serial '{}' was admitted here; {}", arguments.who,
      scenarios::did_you_mean(
          arguments.who, names,
          fmt::format("'shoal keys show {}' lists the admitted nodes", arguments.moderator))));
}

int show(const keys_arguments& arguments) {
  bool fine = true;
  for (const std::string& path : arguments.paths) fine = show_keys(path, utc_now()) && fine;
  return fine ? exit_ok : exit_bad_input;
}

int verify(const keys_arguments& arguments) {
  const auto ca = read_text(arguments.ca);
  if (!ca) return fail(ca.error());
  if (const auto fine = read_certificate(*ca); !fine || !fine->moderator)
    return fail(fmt::format("'{}': {}", arguments.ca,
                            fine ? "not the swarm's certificate (swarm.crt)" : fine.error()));
  bool fine = true;
  for (const std::string& path : arguments.paths) {
    const auto refuse = [&](const std::string& why) {
      fail(fmt::format("'{}': {}", path, why));
      fine = false;
    };
    std::error_code error;
    const auto file = fs::is_directory(path, error) ? fs::path(path) / scenarios::contribution_file
                                                    : fs::path(path);
    const auto text = read_text(file);
    if (!text) {
      refuse(text.error());
      continue;
    }
    // The certificate has to be valid at the time of signing. A later end takes nothing back.
    const auto until = scenarios::contribution_until(*text);
    const auto said = until ? read_signed_text(*text, scenarios::contribution_kind, *ca, *until)
                            : failure{until.error()};
    if (!said) {
      refuse(said.error());
      continue;
    }
    fmt::print("{}: signed by '{}', certificate {}\n{}", file.string(), said->name, said->serial,
               said->text);
  }
  return fine ? exit_ok : exit_bad_input;
}

} // namespace

void add_keys(CLI::App& app, action& chosen) {
  auto* command =
      app.add_subcommand("keys", "manage the keys and certificates of a swarm of real hosts");
  command->require_subcommand(1);
  auto arguments = std::make_shared<keys_arguments>();
  const auto add = [&](const char* name, const char* what, int (*run)(const keys_arguments&)) {
    auto* one = command->add_subcommand(name, what);
    one->callback(
        [arguments, run, &chosen] { chosen = [arguments, run] { return run(*arguments); }; });
    return one;
  };
  const auto add_moderator = [&](CLI::App* to) {
    to->add_option("--moderator", arguments->moderator, "the moderator's folder")
        ->required()
        ->type_name("DIR");
  };
  const auto add_valid = [&](CLI::App* to, const char* standard) {
    to->add_option("--valid", arguments->valid,
                   fmt::format("for how long, as in 12h ({})", standard))
        ->type_name("DURATION");
  };

  auto* first = add("init", "make a moderator: its key and certificate", init);
  first->add_option("DIR", arguments->out, "the moderator's new folder")
      ->required()
      ->type_name("DIR");
  first->add_option("--swarm", arguments->swarm, "the swarm's name (swarm)")->type_name("NAME");
  add_valid(first, "365d");

  auto* ask =
      add("request", "make a node's key, and a request that the moderator answers", request);
  ask->add_option("NAME", arguments->who, "the node's name")->required()->type_name("NAME");
  ask->add_option("-o,--out", arguments->out, "the node's new folder")
      ->required()
      ->type_name("DIR");

  auto* let_in = add("admit", "issue a certificate, for a request or with a new key", admit);
  let_in
      ->add_option("WHO", arguments->who,
                   "a request (FILE.csr), or the name of a node whose key is made here")
      ->required()
      ->type_name("NAME|FILE.csr");
  add_moderator(let_in);
  let_in->add_option("-o,--out", arguments->out, "a new folder for what the node gets")
      ->required()
      ->type_name("DIR");
  add_valid(let_in, "30d");
  let_in->add_flag("--operator", arguments->operates,
                   "the holder may tell nodes to leave (shoal drain)");

  auto* take_back = add("revoke", "take back a node's certificates, or one of them",
                        [](const keys_arguments& from) { return revoke(from); });
  take_back->add_option("WHO", arguments->who, "the name of a node, or a serial number")
      ->type_name("NAME|SERIAL");
  take_back
      ->add_option("--evidence", arguments->evidence,
                   "proofs of guilt, instead of WHO: a node's bans.txt, or one line of it")
      ->type_name("FILE|LINE");
  add_moderator(take_back);

  auto* look = add(
      "show",
      "show what files and folders of keys hold, and whether they are valid now; never a secret",
      show);
  look->add_option("PATH", arguments->paths, "files or folders")->required()->type_name("FILE|DIR");

  auto* prove = add(
      "verify", "show what nodes report as their contribution, and check their signatures", verify);
  prove->add_option("PATH", arguments->paths, "run directories of nodes, or their contribution.txt")
      ->required()
      ->type_name("DIR|FILE");
  prove->add_option("--ca", arguments->ca, "the swarm's certificate")
      ->required()
      ->type_name("swarm.crt");
}

} // namespace shoal::tools
