// Messages of every type that hosts send each other, with any fields, to the actors that hosts can
// reach. These are a node of the hash table, a data shard, two replicas of one, and a group.
// Further ones are a fetcher, peers of each kind, averagers, and the members of a round. They come
// from a stranger or from a known partner, at any time. No actor crashes, and no handler throws
// (both end the program). The input names the receiver, the messages, and their fields.
#include "actors/all_messages.hpp"
#include "actors/averaging/averager.hpp"
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/group.hpp"
#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/auxiliary_peer.hpp"
#include "actors/training/delayed_peer.hpp"
#include "actors/training/moshpit_peer.hpp"
#include "actors/training/peer.hpp"
#include "actors/training/state_fetcher.hpp"
#include "tests/actors/support/mini_world.hpp"
#include "tests/actors/support/round_lab.hpp"
#include "tests/fuzz/targets.hpp"

#include <caf/send.hpp>

#include <limits>
#include <type_traits>

namespace shoal::fuzz {

namespace {

using namespace actors;
using namespace actors::testing;
using namespace std::chrono_literals;

constexpr int most_messages = 24;

template <class... Ts>
struct type_list {};

/// Between hosts; and `found`, in which the records are those of others.
using messages_of_strangers =
    type_list<found, nodes_query, records_query, query_answer, record_put, put_receipt,
              sample_request, samples, samples_returned, commit, commit_received, lease_lost,
              join_request, join_accepted, join_rejected, join_withdrawn, group_begun,
              member_declined, part_chunk, reduced_chunk, chunk_received, part_query, part_claim,
              part_answer, part_wanted, member_ready, member_finished, state_request, state_offer,
              state_refused, state_hold, state_chunk_request, state_chunk, chain_request,
              chain_answer, address_query, address_answer, dial_request, dial_answer, greeting,
              gossip_offer, gossip_answer, push_share, push_received, replica_hello, ledger_update,
              ledger_received, not_primary, whole_part, whole_mean>;

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

/// Fills the fields of a message: with what could be true as often as with what cannot.
class filler {
public:
  using result_type = void;
  filler(front& from, const std::vector<caf::actor>& known) : from_(from), known_(known) {}

  template <class... Ts>
  void operator()(Ts&&... fields) {
    (fill(fields), ...);
  }

  template <class T>
  void fill(T& x) {
    if constexpr (std::is_base_of_v<caf::meta::annotation, std::remove_cvref_t<T>>) {
    } else if constexpr (std::is_integral_v<T>) {
      x = number<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      x = text();
    } else if constexpr (std::is_same_v<T, payload>) {
      x = data();
    } else if constexpr (std::is_same_v<T, caf::actor>) {
      x = known_[from_.byte() % known_.size()];
    } else if constexpr (is_vector<T>::value) {
      x.resize(from_.byte() % 5);
      for (auto& each : x) fill(each);
    } else {
      inspect(*this, x);
    }
  }

private:
  template <class T>
  T number() {
    const auto how = from_.byte();
    if (how < 160) return static_cast<T>(how % 16);
    if (how < 200) return static_cast<T>(from_.byte());
    if (how < 215)
      return static_cast<T>(mini_world::utc_start_ns +
                            std::int64_t{from_.two_bytes()} * 10'000'000);
    if (how < 225) return std::numeric_limits<T>::max();
    if (how < 235) return std::numeric_limits<T>::min();
    if (how < 240) return static_cast<T>(std::numeric_limits<T>::max() / 2 + from_.byte());
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) out = out << 8 | from_.byte();
    return static_cast<T>(out);
  }
  std::string text() {
    const auto how = from_.byte();
    if (how < 60) return std::string(progress_key);
    if (how < 100) return "0000000000000005";
    if (how > 250) return std::string(how * 4, 'x');
    return std::string(text_of(from_.take(how % 24)));
  }
  payload data() {
    const auto how = from_.byte();
    if (how == 255) return payload::size_only(4 * std::size_t{from_.byte()});
    if (how >= 240) return payload{std::vector<float>(how - 239U, 1.5F)};
    const auto some = from_.take(how % 80);
    return payload{std::vector<std::byte>(some.begin(), some.end())};
  }

  front& from_;
  const std::vector<caf::actor>& known_;
};

/// Calls what(message) for the `which`-th type.
template <class F, class... Ts>
void with_type(type_list<Ts...>, std::size_t which, F what) {
  std::size_t at = 0;
  ((at++ == which % sizeof...(Ts) ? what(Ts{}) : void()), ...);
}

template <class F>
void each_message(front& from, const std::vector<caf::actor>& known, F what) {
  for (int sent = 0; sent < most_messages && !from.empty(); ++sent) {
    const auto type = from.byte(), how = from.byte();
    with_type(messages_of_strangers{}, type, [&](auto message) {
      filler{from, known}.fill(message);
      what(how, std::move(message));
    });
  }
}

struct numbered_source final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    for (auto& byte : out) byte = static_cast<std::byte>(index);
  }
  bool is_size_only() const override { return false; }
};

class small_work final : public workload {
public:
  std::uint64_t value_count() const override { return 4; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(4, 1.0F)};
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double> into) const override {
    for (auto& each : into) each += 1;
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override {
    auto out = at;
    ++out.step;
    return out;
  }
};

using silent = collector<state_request>;

/// One of the actors in a world of its own, and what is sent to it.
void to_actors(std::uint8_t kind, front& from) {
  mini_world world;
  const auto spawn_silent = [&](const char* name) {
    return world.spawn<silent>(world.add_host(name), std::make_shared<silent::log>());
  };
  const auto stranger = spawn_silent("stranger"), other = spawn_silent("other");
  auto& here = world.add_host("here");
  std::vector<caf::actor> under; // the receiver
  switch (kind) {
  case 0: {
    under.push_back(world.spawn<dht_node>(here, dht_config{}));
    dht_config second;
    second.bootstraps = {under.front()};
    under.push_back(world.spawn<dht_node>(world.add_host("second"), second));
    break;
  }
  case 1: {
    data_shard_config options;
    options.lease_time = 16s;
    options.chunk_bytes = 64;
    options.dht = world.spawn<dht_node>(here, dht_config{});
    under.push_back(world.spawn<data_shard>(here, options, std::make_shared<numbered_source>(),
                                            std::make_shared<sample_ledger>(options.lease_time)));
    break;
  }
  case 2: {
    round_request request;
    request.epoch = 7;
    request.values = payload{std::vector<float>(6, 1.0F)};
    request.weight = 3;
    request.samples = {{0, 3}};
    request.rate_up = request.rate_down = 1'000'000;
    request.known_samples = 1;
    request.dht = other;
    averaging_config options;
    options.chunk_bytes = 8;
    for (const char* name : {"first", "second"})
      under.push_back(world.spawn<group_actor>(world.add_host(name), other, options, request));
    break;
  }
  case 3: {
    model_state state;
    state.epoch = 3;
    state.id = {1, 2};
    state.parameters = payload{std::vector<float>(6, 2.0F)};
    auto download = std::make_shared<state_download>(state.id, state.parameters.size(), 0, false);
    under.push_back(world.spawn<state_fetcher>(
        here, other, fetch_config{}, std::vector<expected_peer>{{5, stranger}, {6, other}},
        download));
    break;
  }
  case 8: { // two replicas of a shard
    const auto node = world.spawn<dht_node>(here, dht_config{});
    for (std::uint64_t index_block = 0; index_block < 2; ++index_block) {
      auto& host = world.add_host("replica");
      dht_config dht;
      dht.bootstraps = {node};
      data_shard_config options;
      options.lease_time = 16s;
      options.chunk_bytes = 64;
      options.dht = world.spawn<dht_node>(host, dht);
      options.replication.replicas = 2;
      options.find_shard =
          [&host, ours = member_of(host.key())](const caf::strong_actor_ptr& address,
                                                std::string_view) -> std::optional<std::size_t> {
        if (host.member_of(address) != ours) return std::nullopt;
        return host.peer_of(address);
      };
      under.push_back(world.spawn<data_shard>(
          host, options, std::make_shared<numbered_source>(),
          std::make_shared<sample_ledger>(options.lease_time, index_block)));
    }
    world.run_for(30s); // until they know each other
    break;
  }
  case 9:
  case 10:
  case 11: { // gossip, push-sum, a group that is given
    auto everyone = std::make_shared<std::vector<caf::actor>>();
    auto group = std::make_shared<group_begun>();
    for (std::uint32_t index = 0; index < 3; ++index) {
      averager_config options;
      options.index = index;
      options.everyone = everyone;
      options.on_done = [](std::uint32_t, const averaging_done&) {};
      auto& host = world.add_host("averager");
      const auto* strategy = averaging_strategies().find(kind == 9    ? "gossip"
                                                         : kind == 10 ? "push-sum"
                                                                      : "all-reduce");
      under.push_back(world.spawn_by(
          host, [&](caf::actor_system& system) { return strategy->spawn(system, host, options); }));
      everyone->push_back(under.back());
      group->members.push_back({host.id(), under.back(), 1, 1'000'000, 1'000'000, 2, 1, {}});
    }
    group->boundaries = {0, 2, 4, 6};
    for (const auto& one : under) {
      world.send(one, hold_values{payload{std::vector<float>(6, 1.0F)}});
      // The last member takes part only in the next round, so an earlier message is early.
      world.send(one,
                 averaging_round{
                     one == under.back() ? 4U : 5U, true, {}, 0, kind == 11 ? group : nullptr});
    }
    break;
  }
  default: {
    peer_config options;
    options.target_batch = 8;
    options.averaging.chunk_bytes = 8;
    moshpit_options grid;
    grid.grid = {2, 2};
    auto pool = std::make_shared<state_pool>(std::make_shared<small_work>());
    under.push_back(
        kind == 12   ? world.spawn<delayed_peer>(here, options, overlap_options{overlap::averaging},
                                               pool, other)
        : kind == 13 ? world.spawn<moshpit_peer>(here, options, grid, pool, other)
        : kind == 14 ? world.spawn<auxiliary_peer>(here, options, overlap_options{}, pool, other)
                     : world.spawn<peer>(here, options, pool, other));
    caf::anon_send(under.back(), found{progress_key, 0, {}});
    break;
  }
  }
  world.settle();
  std::vector<caf::actor> known{{}, stranger, other};
  known.insert(known.end(), under.begin(), under.end());
  each_message(from, known, [&](std::uint8_t how, auto message) {
    const auto& to = under[how % under.size()];
    const auto& by = how & 4 ? other : stranger;
    caf::send_as(by, to, std::move(message));
    world.settle();
    if (how >= 192) world.run_for(how >= 224 ? 30s : 400ms);
  });
  world.run_for(1s);
}

/// The members of a round, one of whom says anything.
void to_members(front& from) {
  lab_options options;
  const auto shape = from.byte();
  for (std::uint32_t m = 0; m < 2U + shape % 3; ++m) options.members.push_back({m + 1});
  const kernels::codec codecs[] = {kernels::codec::none, kernels::codec::blockwise8,
                                   kernels::codec::top_k, kernels::codec::float16};
  options.codec = codecs[shape / 4 % 4];
  round_lab lab(options);
  lab.start();
  const auto group = lab.group();
  std::vector<caf::actor> known{{}};
  for (const auto& member : group.members) known.push_back(member.address);
  each_message(from, known, [&](std::uint8_t how, auto message) {
    if constexpr (requires { message.group; })
      if (how % 8 != 7) message.group = group.group;
    for (int steps = how / 16; steps > 0; --steps) lab.step();
    const auto to = how % lab.size();
    if (how & 8)
      lab.inject_by_stranger(to, caf::make_message(std::move(message)));
    else
      lab.inject((to + 1) % lab.size(), to, caf::make_message(std::move(message)));
  });
  must(lab.run(), "whatever a member says, the round ends");
}

} // namespace

void strangers(bytes input) {
  front from(input);
  const auto kind = from.byte() % 16;
  if (kind < 5 || (kind >= 8 && kind < 15))
    to_actors(static_cast<std::uint8_t>(kind), from);
  else
    to_members(from);
}

} // namespace shoal::fuzz
