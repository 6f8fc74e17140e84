#include "tests/cluster/support/swarm.hpp"

#include "kernels/base/digest.hpp"
#include "netem/wire/key_files.hpp"
#include "scenarios/runner/node.hpp"
#include "scenarios/schema/load.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace shoal::cluster {

using namespace netem::wire;

namespace {

constexpr duration day = 24h;

template <class T>
T must(result<T> what) {
  REQUIRE_MESSAGE(what.ok(), (what.ok() ? std::string{} : what.error()));
  return *std::move(what);
}

} // namespace

std::int64_t swarm::utc_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The moderator was made three days ago, so that certificates can have expired.
swarm::swarm(const std::string& scenario, bool tls)
    : tls_(tls), moderator_(must(moderator::make("reef", utc_ns() - (3 * day).count(), 365 * day))),
      revoked_(must(revocation_list::read(moderator_.first_list(utc_ns() - (3 * day).count()),
                                          moderator_.certificate_pem()))) {
  e2e::spill(scenario_file(), scenario);
}

identity swarm::admit(const std::string& name, bool operates) const {
  const auto key = signing_key::make();
  return {must(moderator_.admit(name, key.public_key(), utc_ns(), 30 * day, operates)),
          std::string(key.pem().view())};
}

std::string swarm::keys_of(const std::string& name, bool operates) {
  auto& path = keys_[name];
  if (!path.empty()) return path;
  path = (folder_ / ("keys-" + name)).string();
  const auto who = admit(name, operates);
  auto folder = must(new_folder::create(path));
  const std::pair<std::string_view, std::string> files[] = {
      {node_key_file, who.key_pem},
      {node_certificate_file, who.certificate_pem},
      {swarm_certificate_file, moderator_.certificate_pem()},
      {revocation_list_file, revoked_.pem()}};
  for (const auto& [file, text] : files) REQUIRE(folder.write(file, text).ok());
  REQUIRE(folder.commit().ok());
  std::filesystem::permissions(std::filesystem::path(path) / node_key_file,
                               std::filesystem::perms::owner_read |
                                   std::filesystem::perms::owner_write);
  return path;
}

void swarm::take_back(const std::string& certificate_pem) {
  const std::vector<std::string> serials{must(read_certificate(certificate_pem)).serial};
  revoked_ = must(revocation_list::read(must(moderator_.revoke(revoked_, serials, utc_ns())),
                                        moderator_.certificate_pem()));
}

void swarm::bring_list_to(const std::string& keys) const {
  REQUIRE(write_text(std::filesystem::path(keys) / revocation_list_file, revoked_.pem()).ok());
}

void swarm::revoke(const identity& whose) {
  take_back(whose.certificate_pem);
  for (const auto& [name, path] : keys_) bring_list_to(path);
}

void swarm::revoke_at(const std::string& where, const std::string& whose) {
  take_back(e2e::slurp(std::filesystem::path(keys_of(whose)) / node_certificate_file));
  bring_list_to(keys_of(where));
}

hello swarm::hello_of(const std::string& name, std::uint64_t link) const {
  auto loaded = scenarios::load(scenario_file());
  REQUIRE(loaded.value);
  const auto scenario = scenarios::common_text(*loaded.value);
  const auto hash = hash_of(std::as_bytes(std::span(scenario)));
  hello out;
  out.link = link;
  out.name = name;
  out.incarnation = static_cast<std::uint32_t>(utc_ns() / 100'000'000);
  out.utc_ns = utc_ns();
  std::copy(hash.bytes.begin(), hash.bytes.end(), out.scenario.begin());
  return out;
}

std::uint16_t swarm::port_of(const std::string& name) {
  auto& out = ports_[name];
  if (out == 0) out = free_port();
  return out;
}

std::vector<std::string> swarm::credentials_of(const std::string& name) {
  return tls_ ? std::vector<std::string>{"--keys", keys_of(name)}
              : std::vector<std::string>{"--insecure"};
}

std::unique_ptr<node_process> swarm::start_other(const std::string& label,
                                                 std::vector<std::string> arguments,
                                                 const std::vector<std::string>& environment) {
  arguments.insert(arguments.begin(), {"node", scenario_file()});
  return std::make_unique<node_process>(folder_.path(), label, arguments, environment);
}

node_process& swarm::start(const std::string& name, const std::vector<std::string>& more,
                           const std::vector<std::string>& environment) {
  if (joins_.empty()) joins_.push_back(name);
  starts_[name] = {more, environment, 0};
  return restart(name);
}

node_process& swarm::restart(const std::string& name) {
  auto& how = starts_.at(name);
  ++how.lives;
  std::vector<std::string> arguments{"--name", name,         "--listen",  address_of(name),
                                     "--out",  out_of(name), "--metrics", "127.0.0.1:0"};
  for (const auto& other : joins_)
    if (other != name) arguments.insert(arguments.end(), {"--join", address_of(other)});
  const auto credentials = credentials_of(name);
  arguments.insert(arguments.end(), credentials.begin(), credentials.end());
  arguments.insert(arguments.end(), how.more.begin(), how.more.end());
  auto& out = nodes_[name];
  out = start_other(std::filesystem::path(out_of(name)).filename(), std::move(arguments),
                    how.environment);
  return *out;
}

std::string swarm::out_of(const std::string& name) const {
  const auto lives = starts_.at(name).lives;
  return (folder_ / (lives == 1 ? name : name + "." + std::to_string(lives))).string();
}

nlohmann::json swarm::summary(const std::string& name) const {
  return nlohmann::json::parse(e2e::slurp(std::filesystem::path(out_of(name)) / "summary.json"),
                               nullptr, false);
}

series swarm::metrics(const std::string& name) {
  const std::string before = "metrics: http://127.0.0.1:";
  REQUIRE(node(name).says(before));
  const auto err = node(name).err();
  const auto port = std::stoul(err.substr(err.find(before) + before.size()));
  return read_series(http_get(static_cast<std::uint16_t>(port), "/metrics"));
}

void swarm::check_trained(std::uint64_t epochs) {
  for (auto& [name, process] : nodes_) {
    CAPTURE(name);
    const auto exit = process->wait(2 * patience);
    INFO(process->err());
    REQUIRE(exit == 0);
    const auto result = summary(name);
    REQUIRE(result.is_object());
    // A replica of the shard that only follows sees no commit.
    const auto reached = result.at("epochs").get<std::uint64_t>();
    if (name.starts_with("shard") && nodes_.contains("shard-1"))
      CHECK(reached <= epochs);
    else
      CHECK(reached == epochs);
    for (const auto& [invariant, counts] : result.at("invariants").items()) {
      CAPTURE(invariant);
      CHECK(counts.at("violated") == 0);
    }
  }
}

} // namespace shoal::cluster
