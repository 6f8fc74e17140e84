// Group actors of a few processes average a vector over real connections (netem/wire), as the peers
// of `shoal node` do. The time runs from a barrier over all processes, which know of each other by
// then, to the last member's end. It includes matchmaking and voting, and not the look-up in the
// DHT.
// Usage: wire_all_reduce PROCESSES MEGABYTES ROUNDS [OPTION...]
//   prints `seconds=S` for each round, and `resident_mib=M`, the most of any process
//   --tls              with keys that a moderator made, else neither encrypted nor authenticated
//   --chunk KIB        of the vector in one message (default 256)
//   --workers N        threads that run actors (default 2)
//   --uplink RATE      as `shoal node --uplink`: bulk is paced to this line
//   --kill             in the round after the first one process is killed once half of its chunks
//                      are at their reducers; prints how the others end
//   --places SPACE:ADDRESS,...    network namespaces and addresses: a process in each
#include "actors/averaging/group.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/probes.hpp"
#include "kernels/base/digest.hpp"
#include "netem/wire/credentials.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator.hpp"
#include "scenarios/runner/member_keys.hpp"
#include "scenarios/runner/world.hpp"
#include "tests/bench/averaging.hpp"
#include "tests/bench/processes.hpp"

#include <caf/all.hpp>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>

using namespace shoal;
using namespace shoal::actors;
namespace wire = shoal::netem::wire;

namespace {

struct arguments {
  unsigned processes = 4, rounds = 5, workers = 2;
  std::size_t values = 0;
  std::uint64_t chunk_bytes = 256 * 1024;
  bool tls = false, kill = false;
  double uplink = 0;
  std::vector<bench::place> places;
  std::filesystem::path keys; // a folder for each process
};

struct shared_state : bench::shared_times {
  std::array<std::atomic<std::uint32_t>, bench::most_processes> port, outcome, done;
  std::array<std::atomic<std::uint64_t>, bench::most_processes> peer, result;
  std::array<std::atomic<std::int64_t>, bench::most_processes>
      deadline; // matchmaking's deadline, as the group's actor wrote it into its record
  std::atomic<std::int64_t> killed_ns;
};

/// Stands for the DHT: takes a group's record, and answers nothing.
class directory final : public caf::event_based_actor {
public:
  directory(caf::actor_config& config, host&, std::atomic<std::int64_t>& deadline)
      : caf::event_based_actor(config), deadline_(deadline) {
    set_default_handler(caf::drop);
  }
  caf::behavior make_behavior() override {
    return {
        [this](const store& m) { deadline_ = matchmaking::bid::unpack(m.entry.value).deadline; }};
  }

private:
  std::atomic<std::int64_t>& deadline_;
};

std::string name_of(unsigned process) {
  return fmt::format("m{}", process);
}

class member {
public:
  member(const arguments& options, shared_state& all, unsigned self)
      : options_(options), all_(all), self_(self) {}

  int run() {
    input_ = payload{bench::averaging_input(self_, options_.values)};
    scenarios::world_options options;
    options.mode = netem::time_mode::wall_clock;
    options.actor_threads = options_.workers;
    options.compute_threads = 1;
    auto& real = options.real.emplace();
    real.alone = true;
    const auto& place = options_.places[self_];
    real.host = [&](const std::string&) {
      wire::host_options out;
      out.listen = wire::address{place.address, 0};
      out.uplink = options_.uplink;
      return out;
    };
    if (options_.tls) {
      auto credentials = wire::load_credentials(options_.keys / name_of(self_));
      if (!credentials) return failed(credentials.error());
      real.options.credentials = credentials->tls;
      real.options.admits = credentials->admits;
      real.options.keys = {credentials->key, credentials->certificate};
      real.keys =
          scenarios::member_keys_of(name_of(self_), credentials->key, credentials->certificate);
    }
    real.options.on_refused = [this](netem::host_index, const std::string& where, wire::refusal why,
                                     const std::string& text, bool) {
      if (why != wire::refusal::none)
        failed(fmt::format("{}: {} {}", where, wire::name_of(why), text));
    };
    scenarios::world in(std::move(options));
    in.on_observation = [this](const host&, const observation& what) { saw(what); };
    in.on_probe = [this](netem::host_index, std::string_view point) {
      if (!dies_ || round_ != 1 || point != probes::half_sent) return;
      all_.killed_ns = bench::steady_ns();
      raise(SIGKILL);
    };
    dies_ = options_.kill && self_ + 1 == options_.processes;
    const auto region = in.net().add_region("here");
    const data_rate rate{1e9};
    auto& here = in.boot(in.net().add_machine(name_of(self_), region, rate, rate));
    if (auto broken = in.broken()) return failed(*broken);
    const auto index = in.index_of(here);
    all_.port[self_] = in.wire()->listens_at(index).port;
    all_.peer[self_] = here.id();
    all_.wait();
    // A link serves both ways.
    for (unsigned other = 0; other < self_; ++other)
      in.wire()->join(
          index, {options_.places[other].address, static_cast<std::uint16_t>(all_.port[other])});
    const auto nobody = in.spawn<directory>(here, std::ref(all_.deadline[self_]));
    const unsigned last = options_.kill ? 1 : options_.rounds;
    for (round_ = 0; round_ <= last; ++round_) { // the first one is looked at and not timed
      if (int status = run_round(in, here, nobody); status != 0) return status;
    }
    all_.resident_kib[self_] = bench::most_resident_kib();
    all_.done[self_] = 1;
    if (!dies_)
      for (unsigned other = 0; other < options_.processes; ++other)
        if (!options_.kill || other + 1 < options_.processes)
          if (!until(in, [&] { return all_.done[other] != 0; }))
            return failed("the others do not end");
    return 0;
  }

private:
  static int failed(const std::string& why) { return std::fprintf(stderr, "%s\n", why.c_str()), 1; }

  bool until(scenarios::world& in, const std::function<bool()>& what) {
    for (const auto give_up = in.clock().now() + std::chrono::minutes(5); !what();
         in.clock().run(in.clock().now() + std::chrono::milliseconds(5)))
      if (in.clock().now() > give_up || wrong_) return false;
    return true;
  }

  int run_round(scenarios::world& in, host& here, const caf::actor& nobody) {
    averaging_config config;
    config.chunk_bytes = options_.chunk_bytes;
    config.group_size = options_.processes;
    config.round_timeout = std::chrono::minutes(5);
    round_request request;
    request.values = input_;
    request.weight = 1;
    request.samples = {{self_, 1}};
    request.rate_up = here.rate_up();
    request.rate_down = here.rate_down();
    request.known_samples = request.wanted = options_.processes;
    request.dht = nobody;
    all_.deadline[self_] = 0;
    const auto index = in.index_of(here);
    const auto group = in.spawn<group_actor>(here, nobody, config, std::move(request));
    in.wire()->introduce(index, group);
    found ready;
    const bool known = until(in, [&] {
      ready.records.clear();
      for (const auto& other : in.wire()->connected_peers(index)) {
        const auto m = static_cast<unsigned>(std::stoul(other.name.substr(1)));
        if (!other.service || other.service == groups_[m] || all_.deadline[m] == 0) return false;
        ready.records.push_back(record{fmt::format("{:016x}", all_.peer[m].load()), other.service,
                                       matchmaking::bid{all_.deadline[m], true}.pack(), 0});
      }
      return ready.records.size() + 1 == options_.processes;
    });
    if (!known) return failed("the others do not come");
    for (const auto& other : in.wire()->connected_peers(index))
      groups_[std::stoul(other.name.substr(1))] = other.service;
    all_.wait();
    all_.begun[round_][self_] = bench::steady_ns();
    in.clock().as_host(index, [&] { caf::anon_send(group, ready); });
    ready = {};
    if (!until(in, [&] { return std::lock_guard{mutex_}, ended_.has_value(); }))
      return failed("the round does not end");
    const auto ended = *std::exchange(ended_, std::nullopt);
    all_.outcome[self_] = static_cast<std::uint32_t>(ended.outcome);
    const bool killing = options_.kill && round_ == 1;
    if (ended.outcome != outcome::ok && !(killing && ended.outcome == outcome::partial))
      return failed(fmt::format("{}: the round ended as {}, {}", name_of(self_),
                                static_cast<int>(ended.outcome), static_cast<int>(ended.reason)));
    if (!killing) all_.wait();
    if (round_ == 0 || killing) return check(ended);
    return 0;
  }

  /// Each value is the mean of what the members have that its part names.
  int check(const round_ended& ended) {
    std::vector<unsigned> order(options_.processes); // members in the order of a group
    for (unsigned m = 0; m < order.size(); ++m) order[m] = m;
    std::sort(order.begin(), order.end(),
              [&](unsigned a, unsigned b) { return all_.peer[a] < all_.peer[b]; });
    const auto values = ended.values.floats();
    std::uint64_t next = 0;
    for (const auto& part : ended.parts) {
      if (part.begin != next) return failed("a part is missing");
      next = part.end;
      for (auto j = part.begin; j < part.end; ++j) {
        double sum = 0;
        for (const auto m : part.senders) sum += bench::averaging_value(order[m], j);
        if (values[j] != static_cast<float>(sum / static_cast<double>(part.senders.size())))
          return failed(fmt::format("value {} is wrong", j));
      }
    }
    if (next != options_.values || values.size() != options_.values)
      return failed("values are missing");
    all_.result[self_] = hash_of(ended.values.bytes()).prefix();
    return 0;
  }

  void saw(const observation& what) {
    if (const auto* bad = get_if<misbehaved>(&what)) {
      wrong_ = true;
      failed(bad->why);
    }
    const auto* round = get_if<round_ended>(&what);
    if (round == nullptr) return;
    all_.ended[round_][self_] = bench::steady_ns();
    std::lock_guard guard(mutex_);
    ended_ = *round;
  }

  const arguments& options_;
  shared_state& all_;
  const unsigned self_;
  bool dies_ = false;
  std::atomic<unsigned> round_{0};
  std::atomic<bool> wrong_{false};
  payload input_;
  std::array<caf::actor, bench::most_processes> groups_; // the group actors of the previous round
  std::mutex mutex_;                                     // guards ended_
  std::optional<round_ended> ended_;
};

/// Makes the folders of keys. Errors: those of what it calls.
result<void> make_keys(const arguments& options) {
  const auto utc =
      std::chrono::duration_cast<duration>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  auto moderator = wire::moderator::make("bench", utc, std::chrono::hours(24));
  if (!moderator) return failure{moderator.error()};
  for (unsigned m = 0; m < options.processes; ++m) {
    const auto key = wire::signing_key::make();
    auto certificate = moderator->admit(name_of(m), key.public_key(), utc, std::chrono::hours(12));
    if (!certificate) return failure{certificate.error()};
    auto folder = wire::new_folder::create(options.keys / name_of(m));
    if (!folder) return failure{folder.error()};
    auto done = folder->write(wire::node_key_file, key.pem());
    if (done) done = folder->write(wire::node_certificate_file, *certificate);
    if (done) done = folder->write(wire::swarm_certificate_file, moderator->certificate_pem());
    if (done) done = folder->write(wire::revocation_list_file, moderator->first_list(utc));
    if (done) done = folder->commit();
    if (!done) return done;
  }
  return {};
}

/// The ends of the surviving processes.
int print_survivors(const shared_state& all, const arguments& options) {
  const auto killed = options.processes - 1;
  std::int64_t last = 0;
  for (unsigned m = 0; m < killed; ++m) {
    last = std::max(last, all.ended[1][m]);
    std::printf("%s=%s ", name_of(m).c_str(),
                all.outcome[m] == static_cast<std::uint32_t>(outcome::ok) ? "ok" : "partial");
    if (all.result[m] != all.result[0])
      return std::fprintf(stderr, "members have different results\n"), 1;
  }
  if (all.killed_ns == 0) return std::fprintf(stderr, "nobody was killed\n"), 1;
  std::printf("seconds=%.6f after_kill=%.6f\n",
              1e-9 * static_cast<double>(last - *std::min_element(all.begun[1].begin(),
                                                                  all.begun[1].begin() + killed)),
              1e-9 * static_cast<double>(last - all.killed_ns));
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  arguments options;
  auto usage = [] {
    std::fprintf(stderr,
                 "usage: wire_all_reduce PROCESSES MEGABYTES ROUNDS [--tls] [--kill] [--chunk KIB] "
                 "[--workers N] [--uplink RATE] [--places SPACE:ADDRESS,...]\n");
    return 2;
  };
  if (argc < 4) return usage();
  options.processes = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  options.values = std::strtoul(argv[2], nullptr, 10) * 250'000;
  options.rounds = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  for (int i = 4; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--tls") {
      options.tls = true;
    } else if (option == "--kill") {
      options.kill = true;
    } else if (i + 1 == argc) {
      return usage();
    } else if (option == "--chunk") {
      options.chunk_bytes = std::strtoul(argv[++i], nullptr, 10) * 1024;
    } else if (option == "--workers") {
      options.workers = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    } else if (option == "--uplink") {
      auto rate = parse_rate(argv[++i]);
      if (!rate) return std::fprintf(stderr, "--uplink: %s\n", rate.error().c_str()), 2;
      options.uplink = rate->bits_per_second;
    } else if (option == "--places") {
      options.places = bench::parse_places(argv[++i]);
    } else {
      return usage();
    }
  }
  if (options.processes < 2 || options.processes > bench::most_processes ||
      options.rounds >= bench::most_rounds || options.values == 0 || options.workers == 0)
    return usage();
  options.places.resize(std::max<std::size_t>(options.places.size(), options.processes));
  std::string keys = (std::filesystem::temp_directory_path() / "shoal_bench_XXXXXX").string();
  if (options.tls) {
    if (mkdtemp(keys.data()) == nullptr) return std::perror("mkdtemp"), 3;
    options.keys = keys;
    if (auto made = make_keys(options); !made)
      return std::fprintf(stderr, "%s\n", made.error().c_str()), 3;
  }
  auto& all = bench::share<shared_state>(options.processes);
  const bool good = bench::run_processes(
      options.processes,
      [&](unsigned self) {
        bench::enter(options.places[self].space);
        return member(options, all, self).run();
      },
      options.kill ? static_cast<int>(options.processes) - 1 : -1);
  if (options.tls) std::filesystem::remove_all(options.keys);
  if (!good) return 1;
  if (options.kill) return print_survivors(all, options);
  bench::print_times(all, options.processes, options.rounds);
}
