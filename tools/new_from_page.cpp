#include "tools/new_from_page.hpp"

#include "netem/wire/address.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator_folder.hpp"
#include "netem/wire/signing_key.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/new_scenario.hpp"
#include "scenarios/schema/new_swarm.hpp"
#include "scenarios/schema/questions.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tools/arguments.hpp"
#include "tools/exit_codes.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
namespace sc = scenarios;
using namespace netem::wire;

constexpr std::uint64_t most_friends = 1000, most_steps = 100'000'000;

/// Whether this computer can listen at a port now. Errors: why not.
result<void> can_listen(const address& at) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST;
  if (getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found) != 0)
    return failure{fmt::format("'{}' is no address of this computer", at.host)};
  const int fd = socket(found->ai_family, found->ai_socktype, 0);
  const int on = 1;
  int failed = 0;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, found->ai_addr, found->ai_addrlen) != 0)
    failed = errno;
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  if (failed == 0) return {};
  return failure{fmt::format("port {} cannot be had: {}", at.port, std::strerror(failed))};
}

/// Where to listen for those that dial `at`: a name or an outer address may be a router's.
address listening(const address& at) {
  return {sc::is_loopback(at.host) ? (at.host == "localhost" ? "127.0.0.1" : at.host) : "0.0.0.0",
          at.port};
}

result<address> parse_place(const std::string& text) {
  auto at = parse_address(text);
  if (!at) return at;
  if (at->port == 65535) return failure{"the port after it is needed, too: at most 65534"};
  if (at->port < 1024 && geteuid() != 0)
    return failure{fmt::format("port {} belongs to the system: take one from 1024 on", at->port)};
  if (at->host == "0.0.0.0" || at->host == "::")
    return failure{fmt::format("friends cannot dial {}: give the name or the number by which they "
                               "reach this computer",
                               at->host)};
  for (const unsigned beyond : {0U, 1U})
    if (auto free =
            can_listen(listening({at->host, static_cast<std::uint16_t>(at->port + beyond)}));
        !free)
      return failure{free.error()};
  return at;
}

result<std::string> parse_page(const std::string& text) {
  const auto at = parse_address(text.starts_with(':') ? "127.0.0.1" + text : text);
  if (!at) return failure{at.error()};
  if (auto free = can_listen({at->host == "localhost" ? "127.0.0.1" : at->host, at->port}); !free)
    return failure{free.error()};
  return at->text();
}

/// The absolute form, because the swarm may be started from another folder.
result<std::string> parse_text(const std::string& pattern) {
  std::error_code error;
  const std::string whole = fs::absolute(pattern, error).string();
  if (fs::exists(whole, error) ? fs::is_directory(whole, error) || fs::is_regular_file(whole, error)
                               : !sc::files_matching(whole).empty())
    return whole;
  return failure{fmt::format("no file matches '{}'", pattern)};
}

/// One question, its option, and the function that takes an answer. Errors: a wrong answer.
struct question {
  const char* option;
  const std::optional<std::string>& given;
  std::string text, initially;
  std::function<result<void>(const std::string&)> take;
};

/// Takes the answers from options, then from standard input, and lets the defaults stand as they
/// are asked for. Returns an exit status if something is wrong.
std::optional<int> answer(const std::vector<question>& all, bool yes) {
  bool good = true;
  for (const question& one : all)
    if (one.given)
      if (auto done = one.take(*one.given); !done) {
        fmt::print(stderr, "error: {}: {}\n", one.option, done.error());
        good = false;
      }
  if (!good) return exit_usage;
  for (const question& one : all) {
    if (one.given) continue;
    if (yes) {
      if (auto done = one.take(one.initially); !done)
        return fail(
            fmt::format("{}: {}; give another one with {}", one.option, done.error(), one.option));
      continue;
    }
    // A default is checked like any other answer.
    std::string taken = one.initially;
    bool done = false;
    const auto parse = [&](const std::string& text) -> result<std::string> {
      if (auto fine = one.take(text); !fine) return failure{fine.error()};
      done = true;
      return text;
    };
    while (!done) {
      if (auto asked = sc::ask_one(one.text, one.initially, taken, parse, std::cin, std::cerr);
          !asked)
        return fail(asked.error());
      if (done) break;
      if (auto fine = one.take(one.initially); fine)
        done = true;
      else
        std::cerr << "  " << fine.error() << "\n";
    }
  }
  return std::nullopt;
}

result<void> admit_host(moderator_folder& folder, const fs::path& into, const std::string& name,
                        std::int64_t now) {
  const signing_key key = signing_key::make();
  auto out = new_folder::create(into);
  if (!out) return failure{out.error()};
  const auto pem = folder.admit(name, key.public_key(), now, std::chrono::hours(24 * 365));
  if (!pem) return failure{pem.error()};
  auto done = out->write(node_key_file, key.pem());
  if (done) done = out->write(swarm_certificate_file, folder.keys().certificate_pem());
  if (done) done = out->write(revocation_list_file, folder.revoked().pem());
  if (done) done = out->write(node_certificate_file, *pem);
  if (done) done = out->commit();
  return done;
}

/// Writes the folder. Errors: a file that cannot be written.
result<void> write_folder(const fs::path& folder, const sc::new_swarm& what) {
  std::error_code error;
  fs::create_directories(folder / "keys", error);
  if (error) return failure{fmt::format("'{}': {}", folder.string(), error.message())};
  const std::int64_t now =
      std::chrono::duration_cast<duration>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  auto done =
      moderator_folder::make(folder / "moderator", what.name, now, std::chrono::hours(24 * 366));
  if (!done) return done;
  auto moderator = moderator_folder::open(folder / "moderator", now);
  if (!moderator) return failure{moderator.error()};
  for (const char* name : {"shard-0", "home-0"})
    if (done = admit_host(*moderator, folder / "keys" / name, name, now); !done) return done;
  const std::string program = fs::read_symlink("/proc/self/exe", error).string();
  done = write_text(folder / (what.name + ".yaml"), sc::to_yaml(what));
  if (done) done = write_text(folder / "invite.md", sc::invitation(what));
  if (done) done = write_text(folder / "README.md", sc::owner_notes(what));
  if (done) done = write_text(folder / "start", sc::start_script(what, program));
  if (!done) return done;
  fs::permissions(folder / "start", fs::perms::owner_exec | fs::perms::group_exec,
                  fs::perm_options::add, error);
  if (error) return failure{fmt::format("'{}/start': {}", folder.string(), error.message())};
  return {};
}

} // namespace

int new_from_page(const std::string& name, const page_wishes& wishes) {
  sc::new_swarm made;
  const fs::path folder = name;
  made.name = folder.filename().string();
  if (auto wrong = sc::name_error(made.name)) return fail(*wrong, exit_usage);
  if (auto fine = check_name(made.name); !fine) return fail(fine.error(), exit_usage);
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (!wishes.force)
      return fail(fmt::format("'{}' exists; take another name, or replace it with --force, which "
                              "also removes its keys",
                              name));
    if (!fs::exists(folder / "moderator", error) || !fs::exists(folder / "start", error))
      return fail(fmt::format("'{}' is no folder that this command made; --force leaves it", name));
  }

  const auto count = [](std::uint64_t most, std::uint64_t& into) {
    return [most, &into](const std::string& text) -> result<void> {
      const auto number = sc::parse_count(text, most);
      if (!number) return failure{number.error()};
      into = *number;
      return {};
    };
  };
  std::vector<question> questions;
  questions.push_back(
      {"--workload", wishes.workload,
       fmt::format("What is trained: {}?", fmt::join(sc::workloads().names(), ", ")),
       sc::workloads().standard().name, [&made](const std::string& text) -> result<void> {
         const auto found = sc::parse_workload(text);
         if (!found) return failure{found.error()};
         made.workload = *found;
         return {};
       }});
  if (auto wrong = answer(questions, wishes.yes)) return *wrong;
  questions.clear();
  if (made.workload->learns_text)
    questions.push_back({"--text", wishes.text,
                         "Which text does it learn: a file, a folder, or a pattern?", made.text,
                         [&made](const std::string& text) -> result<void> {
                           const auto found = parse_text(text);
                           if (!found) return failure{found.error()};
                           made.text = *found;
                           return {};
                         }});
  else if (wishes.text)
    return fail(fmt::format("--text: '{}' learns no text", made.workload->name), exit_usage);
  questions.push_back(
      {"--address", wishes.address,
       "At which HOST:PORT do friends reach this computer? With 127.0.0.1 only its users can join.",
       fmt::format("{}:{}", made.host, made.port),
       [&made](const std::string& text) -> result<void> {
         const auto at = parse_place(text);
         if (!at) return failure{at.error()};
         made.host = at->host;
         made.port = at->port;
         return {};
       }});
  questions.push_back({"--friends", wishes.friends, "How many friends do you expect?",
                       std::to_string(made.friends), count(most_friends, made.friends)});
  questions.push_back({"--steps", wishes.steps, "After how many steps of all together does it end?",
                       std::to_string(made.steps), count(most_steps, made.steps)});
  questions.push_back({"--page", wishes.page,
                       "At which HOST:PORT is the page? With 127.0.0.1 only this computer sees it.",
                       made.page, [&made](const std::string& text) -> result<void> {
                         const auto at = parse_page(text);
                         if (!at) return failure{at.error()};
                         const auto place = parse_address(*at);
                         if (place->port == made.port || place->port == made.port + 1)
                           return failure{
                               fmt::format("port {} is already taken by this swarm", place->port)};
                         made.page = *at;
                         return {};
                       }});
  if (auto wrong = answer(questions, wishes.yes)) return *wrong;

  if (auto loaded = sc::load_text(sc::to_yaml(made), made.name + ".yaml"); !loaded.value) {
    print_diagnostics(loaded.errors);
    return exit_bad_input;
  }
  if (wishes.force) fs::remove_all(folder, error);
  if (auto done = write_folder(folder, made); !done) return fail(done.error());
  fmt::print("wrote {0}/: {1}.yaml, keys, moderator, start, invite.md for friends, README.md for "
             "you\n",
             folder.string(), made.name);
  if (!wishes.start) {
    fmt::print("now: {}/start\n", folder.string());
    return exit_ok;
  }
  std::fflush(stdout);
  const std::string script = (folder / "start").string();
  execl("/bin/bash", "bash", script.c_str(), static_cast<char*>(nullptr));
  return fail(fmt::format("cannot start '{}': {}", script, std::strerror(errno)), exit_run_failed);
}

} // namespace shoal::tools
