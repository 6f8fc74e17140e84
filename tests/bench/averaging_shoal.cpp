// Group actors of a few peers average a vector in one process, on the coordinator's wall clock and
// without a network. A message arrives at once, and a payload is a pointer. The time runs from
// group_begun to the last member's end.
// Usage: averaging_shoal MEMBERS MEGABYTES CHUNK_KIB WORKERS ROUNDS
//   prints `seconds=S` for each round
#include "actors/averaging/group.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/messages.hpp"
#include "actors/probes.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/check.hpp"
#include "netem/coordinator.hpp"
#include "tests/bench/averaging.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

using namespace shoal;
using namespace shoal::actors;

namespace {

struct shared_round {
  std::mutex mutex;
  std::optional<std::chrono::steady_clock::time_point> begun;
  std::chrono::steady_clock::time_point ended;
  std::vector<payload> results;
  std::map<caf::actor_id, std::pair<peer_id, key256>> owners; // the hosts of published actors
};

class bench_host final : public host {
public:
  bench_host(shared_round& all, peer_id id)
      : all_(all), id_(id), key_(stand_in_key(std::to_string(id))) {}
  const key256& key() const override { return key_; }
  signature sign(const digest& statement) const override {
    return stand_in_signature(1, key_, statement);
  }
  bool is_signed_by(const key256& key, const digest& statement,
                    const signature& by) const override {
    return by == stand_in_signature(1, key, statement);
  }
  bool admits(const key256&, std::string_view) override { return true; }
  bool ban(const evidence&) override { return false; }
  bool ban(const verdict&) override { return false; }
  bool refuses(const caf::strong_actor_ptr&) const noexcept override { return false; }
  bool is_banned(const member_id&) const noexcept override { return false; }
  peer_id peer_of(const caf::strong_actor_ptr& address) const override {
    return owner_of(address).first;
  }
  member_id member_of(const caf::strong_actor_ptr& address) const override {
    return address ? actors::member_of(owner_of(address).second) : member_id{};
  }
  std::string_view name() const override { return "bench"; }
  peer_id id() const override { return id_; }
  std::int64_t utc_ns() const override { return 0; }
  rng random_stream(std::string_view name) const override { return stream(1, name, id_); }
  caf::actor address_of(const caf::actor& local) override {
    std::lock_guard guard(all_.mutex);
    all_.owners[local.id()] = {id_, key_};
    return local;
  }
  std::uint64_t rate_up() const override { return 1'000'000'000; }
  std::uint64_t rate_down() const override { return 1'000'000'000; }
  std::uint64_t seen_address(const caf::actor&) override { return id_; }
  void dial(const caf::actor&, duration, const caf::actor&, std::uint64_t) override {}
  bool has_relay() const override { return false; }
  void run(std::string_view, std::function<void()>, duration, const caf::actor&,
           std::uint64_t) override {}
  void probe(std::string_view point) override {
    if (point != probes::group_begun) return;
    std::lock_guard guard(all_.mutex);
    if (!all_.begun) all_.begun = std::chrono::steady_clock::now();
  }
  void observe(const observation& what) override {
    std::lock_guard guard(all_.mutex);
    if (auto* bad = get_if<misbehaved>(&what))
      check_failed(__FILE__, __LINE__, "misbehaved", bad->why.c_str());
    auto* round = get_if<round_ended>(&what);
    if (round == nullptr) return;
    SHOAL_CHECK(round->outcome == outcome::ok, "the round is ok");
    all_.ended = std::chrono::steady_clock::now();
    all_.results.push_back(round->values);
  }
  void arriving() noexcept override {}

private:
  std::pair<peer_id, key256> owner_of(const caf::strong_actor_ptr& address) const {
    std::lock_guard guard(all_.mutex);
    const auto found = address ? all_.owners.find(address->id()) : all_.owners.end();
    return found == all_.owners.end() ? std::pair<peer_id, key256>{} : found->second;
  }

  shared_round& all_;
  peer_id id_;
  key256 key_;
};

class sink : public caf::event_based_actor {
public:
  explicit sink(caf::actor_config& config) : caf::event_based_actor(config) {
    set_default_handler(caf::drop);
  }
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 6)
    return std::fprintf(stderr,
                        "usage: averaging_shoal MEMBERS MEGABYTES CHUNK_KIB WORKERS ROUNDS\n"),
           2;
  const auto members = std::strtoul(argv[1], nullptr, 10),
             n = std::strtoul(argv[2], nullptr, 10) * 250'000;
  const auto workers = static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10));
  const int rounds = std::atoi(argv[5]);
  averaging_config options;
  options.chunk_bytes = std::strtoul(argv[3], nullptr, 10) * 1024;
  std::vector<payload> inputs;
  for (std::size_t m = 0; m < members; ++m) inputs.emplace_back(bench::averaging_input(m, n));

  // Hosts outlive their actors, the last of which end with the system.
  std::vector<std::unique_ptr<bench_host>> hosts;
  std::deque<shared_round> rounds_of;
  netem::system_config config{netem::time_mode::wall_clock, workers};
  register_messages(config);
  caf::actor_system system{config};
  system.await_actors_before_shutdown(false);
  auto& clock = netem::coordinator::of(system);
  for (int r = -1; r < rounds; ++r) { // the first one is looked at and not timed
    shared_round& all = rounds_of.emplace_back();
    std::vector<caf::actor> group;
    const auto nobody = system.spawn<sink>();
    for (std::size_t m = 0; m < members; ++m) {
      hosts.push_back(std::make_unique<bench_host>(all, m + 1));
      round_request request;
      request.values = inputs[m];
      request.weight = 1;
      request.samples = {{m, 1}};
      request.rate_up = request.rate_down = 1'000'000'000;
      request.known_samples = request.wanted = static_cast<std::uint32_t>(members);
      request.dht = nobody;
      group.push_back(caf::actor_cast<caf::actor>(system.spawn<group_actor>(
          std::ref(static_cast<host&>(*hosts.back())), nobody, options, request)));
    }
    const matchmaking::bid deadline{options.matchmaking_time.count(),
                                    true}; // as they write it: all were made at 0
    found ready;
    for (std::size_t m = 0; m < members; ++m)
      ready.records.push_back(record{fmt::format("{:016x}", m + 1), group[m], deadline.pack(), 0});
    for (const auto& one : group) caf::anon_send(one, ready);
    ready = {};
    auto ended = [&] {
      std::lock_guard guard(all.mutex);
      return all.results.size() == members;
    };
    while (!ended()) clock.run(clock.now() + std::chrono::milliseconds(20));
    if (r >= 0)
      std::printf("seconds=%.6f\n", std::chrono::duration<double>(all.ended - *all.begun).count());
    else
      for (const auto& result : all.results)
        for (std::size_t j = 0; j < n; ++j)
          if (result.floats()[j] != bench::averaging_sum(members, j) / static_cast<float>(members))
            return std::fprintf(stderr, "value %zu is wrong\n", j), 1;
    for (const auto& one : group) caf::anon_send_exit(one, caf::exit_reason::kill);
    caf::anon_send_exit(nobody, caf::exit_reason::kill);
    group.clear();
    while (clock.live_actors() > 0) clock.run(clock.now() + std::chrono::milliseconds(5));
    all.results.clear();
  }
}
