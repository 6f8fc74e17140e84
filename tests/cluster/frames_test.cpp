// The decoding of incoming bytes: frames, and CAF messages that are truncated,
// changed or made up. Also the sender of a message, which its content cannot change.
#include "actors/all_messages.hpp"
#include "actors/messages.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/message_codec.hpp"
#include "netem/wire/network.hpp"
#include "tests/cluster/support/attacker.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

using namespace shoal;
using namespace shoal::cluster;
using namespace shoal::netem::wire;

namespace {

using bytes = std::vector<std::byte>;

bytes bytes_of(const frame& what) {
  const auto head = std::as_bytes(std::span(what.head));
  return {head.begin(), head.end()};
}

bytes noise(rng& from, std::size_t size) {
  bytes out(size);
  for (auto& each : out) each = static_cast<std::byte>(from.next());
  return out;
}

/// Flips one to four bits.
bytes flipped(rng& from, bytes what) {
  for (auto bits = 1 + from.below(4); bits > 0; --bits)
    what[from.below(what.size())] ^= std::byte{1} << from.below(8);
  return what;
}

hello some_hello() {
  hello out;
  out.link = 0x0123456789abcdef;
  out.name = "lab-3";
  out.incarnation = 77;
  out.address = "10.0.0.5:7000";
  out.utc_ns = 1'700'000'000'000'000'000;
  out.scenario.fill(9);
  out.service = 12;
  return out;
}

/// One host of a real network, with an actor that records senders and messages.
class lone_host {
public:
  explicit lone_host(const std::string& name,
                     std::uint64_t most_frames = wire_options{}.most_frames,
                     std::size_t most_named = wire_options{}.most_named,
                     std::function<void()> on_refused = {})
      : config_(netem::time_mode::wall_clock, 1) {
    actors::register_messages(config_);
    system_ = std::make_unique<caf::actor_system>(config_);
    system_->await_actors_before_shutdown(false);
    wire_options wire;
    wire.acceptable = actors::goes_between_hosts;
    wire.utc_ns = swarm::utc_ns;
    wire.most_frames = most_frames;
    wire.most_named = most_named;
    if (on_refused)
      wire.on_refused = [on_refused](netem::host_index, const std::string&, refusal,
                                     const std::string&, bool) { on_refused(); };
    over_ = std::make_unique<network>(wire);
    netem::fabric_options options;
    options.over = over_.get();
    options.shaped = false;
    options.classify = [](const caf::type_erased_tuple& content) {
      const auto kind = actors::kind_of(content);
      return netem::message_class{static_cast<std::uint8_t>(kind.kind), kind.name};
    };
    net_ = std::make_unique<netem::fabric>(*system_, std::move(options));
    over_->use(*system_, *net_);
    const auto region = net_->add_region("here");
    host_ = net_->start_host(net_->add_machine(name, region, {1e9}, {1e9}), 5);
    REQUIRE(over_
                ->open(host_, {.name = name,
                               .incarnation = 5,
                               .listen = netem::wire::address{"127.0.0.1", 0},
                               .advertise = {}})
                .ok());
    caf::actor local;
    {
      netem::acting_as as{host_};
      // The lambda has an argument: without arguments CAF dereferences a null pointer to an empty
      // tuple, which the standard library's assertions refuse.
      const auto keep = [](caf::event_based_actor* self, lone_host* here) -> caf::behavior {
        self->set_default_handler(caf::drop);
        return {[here, self](const actors::push_received& what) {
          const auto sender = self->current_sender();
          std::lock_guard guard(here->mutex_);
          here->senders_.push_back(
              {sender ? sender->node() : caf::node_id{}, sender ? sender->id() : 0, what.token});
        }};
      };
      local = caf::actor_cast<caf::actor>(system_->spawn(keep, this));
    }
    where_ = net_->address_of(local);
    over_->introduce(host_, where_);
    at_ = over_->listens_at(host_).text();
  }
  ~lone_host() {
    over_->close();
    where_ = nullptr;
    net_.reset();
    system_.reset();
  }

  struct from {
    caf::node_id node;
    caf::actor_id number = 0;
    std::uint64_t token = 0;
  };
  std::vector<from> senders() const {
    std::lock_guard guard(mutex_);
    return senders_;
  }
  const std::string& at() const noexcept { return at_; }
  /// Serves the host's timers while it waits.
  bool wait_until(const std::function<bool()>& true_now) {
    auto& clock = netem::coordinator::of(*system_);
    for (const auto limit = clock.now() + 30s; !true_now();)
      if (clock.run(clock.now() + 10ms) > limit) return false;
    return true;
  }
  caf::actor_system& system() { return *system_; }
  netem::fabric& net() { return *net_; }
  network_counts counts() const { return over_->counts(); }
  void leave() { over_->leave(host_); }
  void join(std::uint16_t port) { over_->join(host_, {"127.0.0.1", port}); }
  void close() { over_->close(); }
  const caf::actor& where() const noexcept { return where_; }

  hello hello_of(const std::string& name, std::uint64_t link) const {
    hello out;
    out.link = link;
    out.name = name;
    out.incarnation = 9;
    out.utc_ns = swarm::utc_ns();
    const auto hash = hash_of({});
    std::copy(hash.bytes.begin(), hash.bytes.end(), out.scenario.begin());
    return out;
  }

private:
  netem::system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::unique_ptr<network> over_;
  std::unique_ptr<netem::fabric> net_;
  netem::host_index host_ = netem::no_host;
  caf::actor where_;
  std::string at_;
  mutable std::mutex mutex_;
  std::vector<from> senders_;
};

/// A host whose link with `lab` is up.
class linked_host : public false_host {
public:
  linked_host(lone_host& lab, const std::string& name, std::uint64_t link)
      : false_host(lab.at(), nullptr) {
    greet(lab.hello_of(name, link));
    const auto theirs = answer();
    REQUIRE(theirs.has_value());
    service_ = static_cast<std::uint32_t>(theirs->service - 1);
  }
  /// The ordinal of the actor that introduces `lab`.
  std::uint32_t service() const noexcept { return service_; }

private:
  std::uint32_t service_ = 0;
};

/// One message of each type that hosts send each other, with content.
std::vector<encoded_message> samples(lone_host& in) {
  std::vector<encoded_message> out;
  const auto add = [&](auto what) {
    auto message = caf::make_message(std::move(what));
    out.push_back(encode(in.system(), message.content()));
  };
  const auto data = [](std::size_t size) { return payload{bytes(size, std::byte{7})}; };
  actors::member_info member;
  member.address = in.where();
  actors::join_request join;
  join.member = member;
  actors::group_begun group;
  group.members = {member, member, member};
  group.boundaries = {0, 10, 20, 30};
  actors::record record;
  record.address = in.where();
  record.value = data(40);
  actors::signed_record signed_record;
  signed_record.entry = record;
  actors::record_put put;
  put.records = {signed_record, signed_record};
  actors::query_answer answer;
  answer.records = {signed_record};
  actors::part_chunk part;
  part.data = data(96);
  actors::reduced_chunk reduced;
  reduced.data = data(40);
  actors::state_chunk state;
  state.data = data(64);
  actors::samples sent;
  sent.data = data(24);
  actors::state_offer offer;
  actors::ledger_update update;
  update.rows.resize(3);
  add(join);
  add(group);
  add(put);
  add(answer);
  add(part);
  add(reduced);
  add(state);
  add(sent);
  add(offer);
  add(update);
  add(actors::records_query{});
  add(actors::commit{});
  add(actors::push_received{3});
  return out;
}

frame frame_of(lone_host& by, std::uint32_t from, std::uint32_t to, const caf::message& message) {
  const auto binary = encode(by.system(), message.content()).binary;
  return message_to(to, {binary.data(), binary.size()}, from);
}

/// A push_received message with `token`, from the sender's actor `from` to the receiver's `to`,
/// given as ordinals.
frame push_frame(lone_host& lab, std::uint32_t from, std::uint32_t to, std::uint64_t token) {
  return frame_of(lab, from, to, caf::make_message(actors::push_received{token}));
}

payload joined(const std::vector<payload>& parts) {
  bytes all;
  for (const auto& each : parts) all.insert(all.end(), each.bytes().begin(), each.bytes().end());
  return payload{std::move(all)};
}

} // namespace

TEST_CASE("truncated or changed or made-up hellos and heads are refused or read exactly") {
  rng random(1);
  const auto good = bytes_of(to_frame(some_hello()));
  bool other_version = false;
  const auto read = read_hello(good, other_version);
  REQUIRE(read.has_value());
  CHECK(bytes_of(to_frame(*read)) == good);
  for (std::size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(read_hello(std::span(good).first(size), other_version));
  }
  std::size_t taken = 0, versions = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto changed = flipped(random, good);
    const auto what = read_hello(changed, other_version);
    versions += other_version;
    if (!what) continue;
    ++taken;
    REQUIRE(bytes_of(to_frame(*what)) == changed); // the hello has no hidden bytes
    REQUIRE(what->name.size() <= 63);
    REQUIRE(what->address.size() <= 300);
  }
  CHECK(taken > 0);
  CHECK(versions > 0);
  for (int round = 0; round < 20'000; ++round)
    REQUIRE_FALSE(read_hello(noise(random, random.below(200)), other_version));

  message_head head;
  head.binary = 100;
  head.beside = 4000;
  const auto message = bytes_of(message_frame(head, {}));
  REQUIRE(message.size() == message_head::bytes);
  REQUIRE(read_message_head(message));
  for (std::size_t size = 0; size < message.size(); ++size)
    CHECK_FALSE(read_message_head(std::span(message).first(size)));
  for (int round = 0; round < 20'000; ++round) {
    const auto changed = flipped(random, message);
    const auto what = read_message_head(changed);
    if (!what) continue;
    REQUIRE(what->more <= 1);
    REQUIRE(what->body() >= what->binary);
    REQUIRE(what->body() >= what->beside);
  }
  head.beside = ~std::uint64_t{0} - 7;
  CHECK_FALSE(read_message_head(bytes_of(message_frame(head, {}))));
}

TEST_CASE("an address reads back as it was written or is refused") {
  for (const char* good :
       {"lab-3.example.org:7000", "10.0.0.5:0", "[::1]:65535", "[fe80::1%eth0]:1"}) {
    const auto read = parse_address(good);
    REQUIRE_MESSAGE(read.ok(), good);
    CHECK(read->text() == good);
  }
  for (const char* bad :
       {"[[x]:5",  "[a]b]:5",     "[::1:5", "::1:5",     "a]:5",       ":5",    "[]:5",
        "a:65536", "a:",          "a",      "unix:/a:5", "dns:///a:5", "a?b:5", "a#b:5",
        "a\xff:5", "[::1%a b]:5", "a b:5",  "a\nb:5",    "a\x7f:5",    "x@a:5", "a:-1"})
    CHECK_FALSE(parse_address(bad).ok());
}

TEST_CASE("the first bytes of a connection are the protocol's, or garbage, or too few to say") {
  CHECK(look_at_first("", true) == first_bytes::too_few);
  CHECK(look_at_first("\x16", true) == first_bytes::too_few);
  CHECK(look_at_first("\x16\x03\x01", true) == first_bytes::ours);
  CHECK(look_at_first("SH", false) == first_bytes::too_few);
  CHECK(look_at_first("SHO", false) == first_bytes::ours);
  CHECK(look_at_first("GET", false) == first_bytes::garbage);
  CHECK(look_at_first("SHO", true) == first_bytes::garbage);
}

TEST_CASE("truncated or changed or made-up messages are refused or are registered messages") {
  lone_host lab("lab");
  rng random(3);
  const auto read = [&](std::span<const std::byte> binary, const payload& beside) {
    return decode(lab.system(), lab.net(), binary, beside, actors::goes_between_hosts);
  };
  std::size_t refused = 0, taken = 0;
  for (const auto& good : samples(lab)) {
    const auto binary = bytes(std::as_bytes(std::span(good.binary)).begin(),
                              std::as_bytes(std::span(good.binary)).end());
    const auto beside = joined(good.beside);
    auto same = read(binary, beside);
    REQUIRE(same.ok());
    CHECK(encode(lab.system(), same->content()).binary == good.binary);
    for (std::size_t size = 0; size < binary.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(read(std::span(binary).first(size), beside).ok());
    }
    auto longer = binary;
    longer.push_back(std::byte{0});
    CHECK_FALSE(read(longer, beside).ok());
    if (!beside.empty()) CHECK_FALSE(read(binary, beside.slice(0, beside.size() - 1)).ok());
    const auto look_at = [&](const bytes& what, const payload& with) {
      const auto message = read(what, with);
      if (!message.ok()) return ++refused;
      // A decoded message can be sent on, so it is whole.
      REQUIRE(message->size() == 1);
      REQUIRE(actors::kind_of(message->content()).name != std::string_view{});
      REQUIRE(encode(lab.system(), message->content()).binary.size() <= 2 * what.size() + 64);
      return ++taken;
    };
    const auto name_bytes = std::size_t{1} + std::to_integer<std::size_t>(binary[0]);
    for (int round = 0; round < 2'000; ++round) {
      look_at(flipped(random, binary), beside);
      // The name, with noise behind it.
      auto made_up = noise(random, name_bytes + random.below(200));
      std::copy_n(binary.begin(), name_bytes, made_up.begin());
      look_at(made_up, payload{noise(random, random.below(64))});
    }
  }
  CHECK(refused > 10'000);
  CHECK(taken > 1'000);
  MESSAGE(refused << " refused, " << taken << " taken");
}

TEST_CASE("the sender of a message is the other end of its link whatever the message says") {
  lone_host lab("lab");
  linked_host honest(lab, "honest", 1), mallory(lab, "mallory", 2);
  const auto send = [&](false_host& by, std::uint32_t from, std::uint64_t token) {
    by.send(0, push_frame(lab, from, honest.service(), token));
  };
  send(honest, 4, 1);
  send(mallory, 4, 2);          // the ordinal of honest's actor
  send(mallory, 0xffffffff, 3); // no sender
  // The ordinal of the receiver itself.
  send(mallory, mallory.service(), 4);
  REQUIRE(wait_until([&] { return lab.senders().size() == 4; }));
  for (const auto& each : lab.senders()) {
    CAPTURE(each.token);
    if (each.token == 3) {
      CHECK_FALSE(each.node);
      continue;
    }
    CHECK((each.node == netem::fabric::node_of(each.token == 1 ? "honest" : "mallory", 9)));
    CHECK(each.number == (each.token == 4 ? mallory.service() + 1 : 5));
  }
}

TEST_CASE("links that bring changed or made-up frames are closed and others stay") {
  lone_host lab("lab");
  linked_host honest(lab, "honest", 1);
  rng random(4);
  constexpr std::uint64_t rounds = 60;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    linked_host mallory(lab, "mallory-" + std::to_string(round), 2 + round);
    for (int i = 0; i < 200; ++i) {
      const auto pipe = static_cast<int>(random.below(2));
      auto what = random.below(2) == 0
                      ? flipped(random, bytes_of(push_frame(lab, message_head{}.from, 0, round)))
                      : noise(random, 1 + random.below(100));
      // A host that says goodbye is let go, so the goodbye is left out.
      if (what.size() == 1 && what[0] == static_cast<std::byte>(frame_kind::leaving)) continue;
      mallory.send(pipe, what);
    }
    // A frame of an unknown kind closes the link at the latest.
    mallory.send(0, frame{{'\x7f'}, {}});
    CHECK(mallory.closed());
  }
  const auto counts = lab.counts();
  CHECK(counts.frames_refused.at("bad_frame") + counts.frames_refused.at("bad_message") ==
        rounds); // each for one reason
  CHECK(counts.links_open == 1);
  CHECK_FALSE(honest.closed(0ms));
}

TEST_CASE("a host that names too many unknown hosts is disconnected, also when it connects again") {
  constexpr std::size_t most = 30;
  lone_host lab("lab", wire_options{}.most_frames, most), elsewhere("elsewhere");
  linked_host honest(lab, "honest", 1), mallory(lab, "mallory", 2);
  const auto to = honest.service();
  const auto naming = [&](std::size_t first, std::size_t count) {
    actors::query_answer answer;
    for (std::size_t i = first; i < first + count; ++i) {
      const auto address =
          elsewhere.net().address_at(netem::fabric::node_of("host-" + std::to_string(i), 1), 3);
      answer.nearer.push_back({{}, caf::actor_cast<caf::actor>(address)});
    }
    return frame_of(elsewhere, 4, to, caf::make_message(std::move(answer)));
  };
  // Repeated names count once, and only for the host that named them first.
  for (int i = 0; i < 5; ++i) mallory.send(0, naming(0, 20));
  mallory.send(0, push_frame(lab, 4, to, 1));
  REQUIRE(lab.wait_until([&] { return lab.senders().size() == 1; }));
  for (int i = 0; i < 5; ++i) honest.send(0, naming(0, 28));
  honest.send(0, push_frame(lab, 4, to, 2));
  REQUIRE(lab.wait_until([&] { return lab.senders().size() == 2; }));
  mallory.send(0, naming(20, 18));
  mallory.send(0, push_frame(lab, 4, to, 3));
  REQUIRE(lab.wait_until([&] { return lab.senders().size() == 3; }));
  CHECK(lab.counts().frames_refused.at("too_many_hosts") == 0);
  mallory.send(0, naming(100, 11));
  CHECK(mallory.closed());
  CHECK(lab.counts().frames_refused.at("too_many_hosts") == 1);
  false_host again(lab.at(), nullptr);
  again.greet(lab.hello_of("mallory", 3));
  CHECK(again.refused() == "banned");
  CHECK_FALSE(honest.closed(0ms));
  CHECK(lab.counts().links_open == 1);
}

TEST_CASE("a host that leaves closes the pipes of a host that has not said everything") {
  lone_host lab("lab");
  linked_host linked(lab, "linked", 1);
  false_host half(lab.at(), nullptr), silent(lab.at(), nullptr);
  half.send(0, to_frame(lab.hello_of("half", 2)));
  REQUIRE(lab.wait_until([&] { return lab.counts().links_open == 1; }));
  lab.leave();
  CHECK(linked.closed());
  CHECK(half.closed());
  CHECK(silent.closed());
  CHECK(lab.counts().links_open == 0);
}

TEST_CASE("a host that sends too many frames is read at the allowed pace") {
  lone_host lab("lab", 50);
  linked_host eager(lab, "eager", 1), honest(lab, "honest", 2);
  const auto to = eager.service();
  const auto begun = std::chrono::steady_clock::now();
  // Each batch waits for the previous one, so at most one batch is in flight.
  constexpr std::size_t batches = 6, batch = 30;
  for (std::size_t b = 1; b <= batches; ++b) {
    for (std::size_t i = 0; i < batch; ++i) eager.send(0, push_frame(lab, 4, to, 1));
    REQUIRE(lab.wait_until([&] { return lab.senders().size() == b * batch; }));
  }
  // The fifth batch ends the third second. The first second may have begun before the first batch.
  CHECK(std::chrono::steady_clock::now() - begun >= 2s);
  CHECK(lab.counts().held_back >= 3);
  CHECK(lab.counts().links_open == 2);
  honest.send(0, push_frame(lab, 4, to, 2));
  CHECK(lab.wait_until([&] { return lab.senders().size() == batches * batch + 1; }));
}

TEST_CASE("a network is closed only when none of its callbacks runs any more") {
  std::atomic<bool> begun{false}, over{false};
  const auto slow = [&] {
    begun = true;
    std::this_thread::sleep_for(300ms);
    over = true;
  };
  lone_host lab("lab", wire_options{}.most_frames, wire_options{}.most_named, slow);
  lab.join(free_port());
  REQUIRE(wait_until([&] { return begun.load(); }));
  lab.close();
  CHECK(over);
}
