#include "netem/wire/network.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include <caf/mailbox_element.hpp>
#include <fmt/format.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/rng.hpp"
#include "netem/coordinator.hpp"
#include "netem/fabric.hpp"
#include "netem/wire/certificates.hpp"
#include "netem/wire/frames.hpp"
#include "netem/wire/message_codec.hpp"
#include "netem/wire/visit.hpp"

namespace shoal::netem::wire {

namespace {

constexpr std::uint32_t nobody = 0xffffffff;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
// Where bulk is paced: 13 ms of a line of 10 Mbit.
constexpr std::size_t paced_piece_bytes = std::size_t{16} << 10;
// What bulk may have of a line. The rest is headers, acknowledgements of what comes, and what is small.
constexpr double paced_share = 0.94;
constexpr std::size_t most_relayed = std::size_t{32} << 20;   // that wait at a relay for one host
constexpr std::size_t longest_text = std::size_t{512} << 10;
constexpr std::size_t most_watched = std::size_t{1} << 16;
constexpr std::size_t most_answers = std::size_t{64} << 10;    // bytes to pings that wait
constexpr std::size_t most_visits = 32;                        // at once
constexpr duration measured_every = std::chrono::seconds(5), rates_over = std::chrono::minutes(1);
constexpr duration first_wait = std::chrono::milliseconds(100), longest_wait = std::chrono::seconds(2);
constexpr const char* pipe_kinds[] = {"control", "bulk"};

node_key key_of(const caf::node_id& node) {
  node_key out;
  const auto* id = node ? dynamic_cast<const caf::node_id::default_data*>(&*node) : nullptr;
  SHOAL_CHECK(id != nullptr, "hosts have node ids of the fabric");
  out.incarnation = id->process_id() - 1;
  out.host = id->host_id();
  return out;
}

// A message that gives its bytes back to the window of its pipe once it has been handled, or was dropped.
class arrived final : public caf::mailbox_element {
 public:
  /// `unhandled`: the sum over all pipes.
  arrived(caf::strong_actor_ptr sender, caf::message content, std::shared_ptr<pipe> from, std::size_t bytes,
          std::shared_ptr<std::atomic<std::uint64_t>> unhandled)
      : caf::mailbox_element(std::move(sender), caf::make_message_id(), {}),
        content_(std::move(content)),
        from_(std::move(from)),
        bytes_(bytes),
        unhandled_(std::move(unhandled)) {
    *unhandled_ += bytes_;
  }
  ~arrived() override {
    content_.reset();
    *unhandled_ -= bytes_;
    from_->window().remove(bytes_);
  }
  caf::type_erased_tuple& content() override { return content_.vals().unshared(); }
  const caf::type_erased_tuple& content() const override { return *content_.cvals(); }
  caf::message move_content_to_message() override { return content_; }
  caf::message copy_content_to_message() const override { return content_; }

 private:
  caf::message content_;
  std::shared_ptr<pipe> from_;
  std::size_t bytes_;
  std::shared_ptr<std::atomic<std::uint64_t>> unhandled_;
};

/// The frames of a message: one, or a first one and pieces.
std::vector<frame> frames_of(message_head head, encoded_message what, std::size_t piece) {
  head.binary = static_cast<std::uint32_t>(what.binary.size());
  head.beside = what.beside_bytes();
  const auto body = head.body();
  head.more = message_head::bytes + body > piece ? 1 : 0;
  std::vector<frame> out(1);
  out[0].head.reserve(message_head::bytes + what.binary.size() + 8);
  write(head, out[0].head);
  what.binary.resize((what.binary.size() + 7) / 8 * 8);
  if (head.more == 0) {
    out[0].head.insert(out[0].head.end(), what.binary.begin(), what.binary.end());
    out[0].behind = std::move(what.beside);
    return out;
  }
  const auto bytes = std::as_bytes(std::span(what.binary));
  std::vector<payload> parts;
  if (!bytes.empty()) parts.emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()));
  parts.insert(parts.end(), what.beside.begin(), what.beside.end());
  std::size_t room = piece - message_head::bytes;
  for (const auto& part : parts)
    for (std::size_t at = 0; at < part.size();) {
      if (room == 0) {
        auto next = frame_writer(frame_kind::piece).done();
        next.head.resize(8);
        out.push_back(std::move(next));
        room = piece - 8;
      }
      const auto count = std::min(room, part.size() - at);
      out.back().behind.push_back(part.slice(at, count));
      at += count;
      room -= count;
    }
  return out;
}

}  // namespace

// -- what all stations share ----------------------------------------------------------------------

struct network::shared {
  wire_options options;
  std::array<std::uint8_t, 32> scenario{};
  caf::actor_system* system = nullptr;
  fabric* net = nullptr;
  coordinator* clock = nullptr;
  std::atomic<std::uint64_t> made{0}, lost{0}, frames_in{0}, frames_out{0}, bytes_in{0}, bytes_out{0}, messages_lost{0}, relayed_bytes{0}, linked{0}, held_back{0}, unhandled{0};
  mutable std::mutex mutex;                    // guards refused
  std::map<std::string, std::uint64_t> refused;
  std::map<host_index, std::string> here;      // where hosts of this process listen; guarded by mutex

  std::string address_of(host_index host) const {
    std::lock_guard guard(mutex);
    const auto found = here.find(host);
    return found == here.end() ? std::string{} : found->second;
  }
  void count(std::string_view why) {
    std::lock_guard guard(mutex);
    ++refused[std::string(why)];
  }
};

struct network::link {
  struct direction {
    std::shared_ptr<pipe> through;
    bool hello = false;                        // theirs has come
    bool over = false;                         // the pipe is closed
    bool left = false;                         // nothing more comes in it: the other side leaves
    duration heard{};
    std::uint64_t frames = 0;                  // of the second that began at `counted_from`
    duration counted_from{};
    message_assembly messages;
  };
  std::uint64_t token = 0;
  bool dialled = false;
  std::mutex greeting;                         // held while their hello is looked at; before the station's lock
  std::atomic<bool> up{false}, closed{false}, misbehaved{false};  // set under the station's lock
  direction pipes[2];                          // control, bulk
  std::atomic<duration> last_sent[2]{duration{}, duration{}};     // the same; any thread
  hello theirs;
  std::string certificate_name;
  host_index host = no_host;                   // once it is up
  caf::node_id node;                           // the same
  std::string target;                          // what was dialled
  std::optional<node_key> relayed;             // it goes over a relay, which says that this is the other end
  std::weak_ptr<link> relay;                   // the link to it
  refusal refused = refusal::none;             // by them
  bool refused_by_us = false;
  std::string refused_text;
  std::uint64_t said_service = 0;              // in our hello
  duration since{};
  std::set<std::uint32_t> watched;             // actors of ours
  std::deque<frame> waiting;                   // bulk that is not its turn yet
  std::size_t waiting_bytes = 0;
  duration asked{}, round_trip{};              // when the last ping for an answer went; what such pings took lately
  std::atomic<std::uint64_t> received{0};      // bytes
  std::uint64_t sent = 0;
  struct passed {
    duration when;
    std::uint64_t sent, received;
  };
  std::deque<passed> lately;                   // of the last minute, the oldest first

  void send(bool bulk, frame what, duration now) {
    auto& to = pipes[bulk ? 1 : 0];
    last_sent[bulk ? 1 : 0] = now;
    to.through->send(std::move(what));
  }
};

// A pipe of a link over a relay: its frames go in frames of the link to the relay.
class network::relayed_pipe final : public pipe, public receive_window {
 public:
  relayed_pipe(std::shared_ptr<link> over, const relayed_head& head, std::function<duration()> now)
      : over_(std::move(over)), head_(head), now_(std::move(now)), kind_(pipe_kinds[head.which]) {}

  void start(std::function<void(payload)> on_frame, std::function<void(const std::string&)> on_closed) override {
    std::lock_guard guard(mutex_);
    on_frame_ = std::move(on_frame);
    on_closed_ = std::move(on_closed);
  }
  void send(frame what) override {
    if (closed_) return;
    auto wrapped = to_bytes(head_);
    wrapped.insert(wrapped.end(), what.head.begin(), what.head.end());
    over_->send(head_.which == 1, {std::move(wrapped), std::move(what.behind)}, now_());
  }
  void finish() override {
    if (closed_.exchange(true)) return;
    over_->send(head_.which == 1, frame_writer(frame_kind::relay_end).put(head_.other).put(head_.link).done(), now_());
    told("it was ended");
  }
  void close() override { finish(); }
  void came(payload bytes) {
    std::function<void(payload)> to;
    {
      std::lock_guard guard(mutex_);
      to = on_frame_;
    }
    if (to && !closed_) to(std::move(bytes));
  }

  std::size_t queued_bytes() const override { return closed_ ? 0 : over_->pipes[head_.which].through->queued_bytes(); }
  receive_window& window() override { return *this; }
  // The relay's pipe is what is read from.
  void add(std::size_t bytes) override { over_->pipes[head_.which].through->window().add(bytes); }
  void remove(std::size_t bytes) override { over_->pipes[head_.which].through->window().remove(bytes); }
  bool held_back() const override { return over_->pipes[head_.which].through->held_back(); }
  bool malformed() const override { return false; }
  std::string certificate() const override { return {}; }
  std::string peer() const override { return "over " + over_->theirs.name; }
  const std::string& kind() const override { return kind_; }

 private:
  void told(const std::string& why) {
    std::function<void(const std::string&)> tell;
    {
      std::lock_guard guard(mutex_);
      tell = std::exchange(on_closed_, {});
      on_frame_ = {};
    }
    if (tell) tell(why);
  }

  const std::shared_ptr<link> over_;
  const relayed_head head_;
  const std::function<duration()> now_;
  const std::string kind_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // guards what follows
  std::function<void(payload)> on_frame_;
  std::function<void(const std::string&)> on_closed_;
};

struct network::remote {
  struct queued {
    frame what;
    bool bulk;
  };
  host_index host = no_host;
  node_key node;
  std::string name, address;
  host_index relay = no_host;                  // over whom it can be reached
  caf::actor service;
  std::shared_ptr<link> up, dialling;
  std::deque<queued> outbox;
  std::size_t outbox_bytes = 0;
  bool trying = false;
  duration trying_since{}, next_try{};
  unsigned attempts = 0;
  std::set<std::uint32_t> watching;
};

// -- one host of this process ---------------------------------------------------------------------

class network::station : public std::enable_shared_from_this<station> {
 public:
  station(std::shared_ptr<shared> all, host_index host, host_options options)
      : all_(std::move(all)),
        host_(host),
        options_(std::move(options)),
        node_(key_of(all_->net->node_of(host))),
        tick_(std::min<duration>(all_->options.detection_time / 8, std::chrono::milliseconds(250))),
        list_number_(all_->options.admits ? all_->options.admits->list_number() : 0),
        tokens_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()) {}

  result<void> open() {
    if (options_.listen) {
      listener_options at;
      at.at = *options_.listen;
      at.tls = all_->options.server_credentials != nullptr;
      at.credentials = at.tls ? all_->options.server_credentials : grpc::InsecureServerCredentials();
      at.patience = std::chrono::duration_cast<std::chrono::milliseconds>(all_->options.hello_time);
      at.pipes = all_->options.bulk;
      at.on_pipe = [weak = weak_from_this()](std::shared_ptr<pipe> made) {
        if (auto self = weak.lock())
          self->incoming(std::move(made));
        else
          reject(made);
      };
      auto made = listener::open(std::move(at));
      if (!made) return failure{made.error()};
      listener_ = std::move(*made);
      if (options_.advertise.empty()) options_.advertise = listener_->at().text();
      std::lock_guard guard(all_->mutex);
      all_->here[host_] = options_.advertise;
    }
    schedule();
    return {};
  }

  address listens_at() const { return listener_ ? listener_->at() : address{}; }

  void close() {
    std::vector<std::shared_ptr<link>> links;
    std::vector<std::shared_ptr<pipe>> pipes;
    {
      std::lock_guard guard(mutex_);
      closed_ = true;
      links.swap(links_);
      for (const auto& each : links) each->closed = true;
      for (auto& [host, r] : remotes_) use(r, nullptr);
      remotes_.clear();
      joins_.clear();
      for (const auto& [through, visit] : visits_) pipes.push_back(visit.through);
    }
    for (const auto& each : links)
      for (auto& direction : each->pipes)
        if (direction.through) pipes.push_back(direction.through);
    for (const auto& each : pipes) each->close();
    if (listener_) listener_->close();
  }

  /// As if the cable was pulled: nothing comes or goes, and nobody is told.
  void fall_silent() { silent_ = true; }

  void introduce(const caf::actor& service) {
    const auto number = service ? service.id() : 0;
    std::lock_guard guard(mutex_);
    service_ = number;
    for (const auto& each : links_)
      if (each->up) each->send(false, frame_writer(frame_kind::introduce).put(std::uint64_t{number}).done(), now());
  }

  void join(const address& where) {
    {
      std::lock_guard guard(mutex_);
      joins_.emplace_back().where = where.text();
    }
    tick();
  }

  void leave() {
    std::vector<std::shared_ptr<pipe>> pipes;
    {
      std::lock_guard guard(mutex_);
      leaving_ = true;
      joins_.clear();
      for (const auto& each : links_) {
        // The last frame of either pipe: one may be closed before what is in the other one has come.
        if (each->up)
          for (const bool bulk : {false, true}) each->send(bulk, frame_writer(frame_kind::leaving).done(), now());
        // Of who is just dialling us the other pipe may not have come yet.
        for (const auto& direction : each->pipes)
          if (direction.through) pipes.push_back(direction.through);
      }
    }
    for (const auto& each : pipes) each->finish();
  }

  bool has_links() const {
    std::lock_guard guard(mutex_);
    return !links_.empty();
  }

  std::vector<neighbour> neighbours() const {
    std::lock_guard guard(mutex_);
    std::vector<neighbour> out;
    for (const auto& [host, r] : remotes_)
      if (r.up) out.push_back(as_neighbour(r));
    return out;
  }

  /// Takes no lock: whoever watches asks while it holds its own.
  void add_counts(wire_counts& into) const {
    if (!listener_) return;
    const auto gate = listener_->refused();
    const std::uint64_t counts[] = {gate.silent, gate.garbage, gate.too_many, gate.handshake};
    for (std::size_t i = 0; i < gate_refusal_names.size(); ++i) into.connections_refused[std::string(gate_refusal_names[i])] += counts[i];
  }

  // -- sending --------------------------------------------------------------

  void carry(netem::endpoint from, netem::endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes, bool bulk) {
    if (silent_) return;
    message_head head;
    head.to = to.ordinal;
    head.from = element->sender ? from.ordinal : nobody;
    head.wire_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 0xffffffff));
    auto frames = frames_of(head, encode(*all_->system, element->content()), bulk && paced() ? paced_piece_bytes : piece_bytes);
    send(to.host, std::move(frames), bulk);
  }

  void watch(netem::endpoint of) {
    if (silent_) return;
    std::unique_lock guard(mutex_);
    if (closed_) return;
    auto& r = remote_of(of.host);
    if (!r.watching.insert(of.ordinal).second) return;
    if (r.up) return watch_over(*r.up, of.ordinal);
    try_for(guard, r);  // which sends it when there is a link
  }

  void actor_ended(std::uint32_t ordinal) {
    std::lock_guard guard(mutex_);
    for (const auto& each : links_)
      if (each->watched.erase(ordinal) > 0) each->send(false, frame_writer(frame_kind::ended).put(ordinal).done(), now());
  }

 private:
  struct joining {
    std::string where;
    std::shared_ptr<link> dialling;
    host_index found = no_host;                // who was there last
    duration next_try{};
    unsigned attempts = 0;
    std::optional<duration> refused_since;
  };

  duration now() const { return all_->clock->now(); }
  std::int64_t utc() const { return all_->options.utc_ns(); }

  static void reject(const std::shared_ptr<pipe>& made) {
    made->start([](payload) {}, [](const std::string&) {});
    made->close();
  }

  neighbour as_neighbour(const remote& r) const {
    neighbour out{r.host, r.name, r.address, r.service, {}, {}, 0, 0};
    if (!r.up) return out;
    const auto& over = *r.up;
    if (const auto relay = over.relay.lock()) out.relay = relay->theirs.name;
    out.round_trip = over.round_trip;
    const auto begun = over.lately.empty() ? link::passed{over.since, 0, 0} : over.lately.front();
    const auto seconds = std::max(1.0, to_seconds(now() - begun.when));
    out.sends = 8 * static_cast<double>(over.sent - begun.sent) / seconds;
    out.receives = 8 * static_cast<double>(over.received - begun.received) / seconds;
    return out;
  }

  /// How long the way there and back takes is asked of each host, however busy the link is; how much went is noted.
  void measure(link& of) {
    if (of.asked > duration{} && now() - of.asked < measured_every) return;
    of.asked = now();
    of.send(false, frame_writer(frame_kind::ping).put(static_cast<std::uint64_t>(of.asked.count())).done(), now());
    of.lately.push_back({now(), of.sent, of.received});
    while (of.lately.front().when < now() - rates_over) of.lately.pop_front();
  }

  void pong_came(link& of, std::uint64_t stamp) {
    std::lock_guard guard(mutex_);
    if (stamp != static_cast<std::uint64_t>(of.asked.count())) return;   // of an earlier one, or made up
    const auto took = now() - of.asked;
    of.round_trip = of.round_trip == duration{} ? took : (7 * of.round_trip + took) / 8;
  }

  remote& remote_of(host_index host) {
    auto& out = remotes_[host];
    if (out.host == no_host) {
      out.host = host;
      out.node = key_of(all_->net->node_of(host));
      out.address = all_->address_of(host);
    }
    return out;
  }

  /// What is sent to `r` goes over this link, or waits. With some hosts there are two, dialled from both sides at once.
  void use(remote& r, std::shared_ptr<link> through) {
    if (through && !r.up) ++all_->linked;
    if (!through && r.up) --all_->linked;
    r.up = std::move(through);
  }

  void watch_over(link& to, std::uint32_t ordinal) { to.send(false, frame_writer(frame_kind::watch).put(ordinal).done(), now()); }

  void send(host_index to, std::vector<frame> frames, bool bulk) {
    std::unique_lock guard(mutex_);
    if (closed_ || leaving_) return;
    auto& r = remote_of(to);
    if (r.up) {
      const auto through = r.up;
      for (auto& each : frames) put_counted(*through, bulk, std::move(each));
      if (through->waiting_bytes + through->pipes[bulk ? 1 : 0].through->queued_bytes() <= all_->options.most_queued) return pump(guard);
      guard.unlock();
      all_->count("send_queue_full");
      return end(through, "it takes nothing");
    }
    for (auto& each : frames) {
      r.outbox_bytes += each.size();
      r.outbox.push_back({std::move(each), bulk});
    }
    if (r.outbox_bytes > all_->options.most_queued) {
      ++all_->messages_lost;
      r.outbox.clear();
      r.outbox_bytes = 0;
    }
    try_for(guard, r);
  }

  // -- dialling -------------------------------------------------------------

  /// Requires: there is no link to it. Releases the lock.
  void try_for(std::unique_lock<std::mutex>& guard, remote& r) {
    if (!r.trying) {
      r.trying = true;
      r.trying_since = now();
      r.next_try = now();
      r.attempts = 0;
    }
    if (r.dialling || r.next_try > now()) return guard.unlock();
    ++r.attempts;
    r.next_try = now() + wait_after(r.attempts);
    if (!r.address.empty()) {
      return dial(guard, r.address, r.dialling);
    }
    if (const auto relay = remotes_.find(r.relay); relay != remotes_.end() && relay->second.up) return dial_over(guard, relay->second.up, r);
    // Somebody told us of it, so somebody knows.
    for (const auto& each : links_)
      if (each->up) each->send(false, frame_writer(frame_kind::where_is).put(r.node).done(), now());
    guard.unlock();
  }

  static duration wait_after(unsigned attempts) { return std::min<duration>(first_wait * (1u << std::min(attempts, 10u)), longest_wait); }

  /// Releases the lock.
  void dial(std::unique_lock<std::mutex>& guard, const std::string& where, std::shared_ptr<link>& slot) {
    auto made = std::make_shared<link>();
    made->token = tokens_.next();
    made->target = where;
    const auto credentials = all_->options.channel_credentials ? all_->options.channel_credentials : grpc::InsecureChannelCredentials();
    for (int i = 0; i < 2; ++i)
      made->pipes[i].through = open_pipe(where, pipe_kinds[i], credentials, i == 0 ? all_->options.control : all_->options.bulk);
    set_off(guard, made, slot);
  }

  /// The same over a relay. Releases the lock.
  void dial_over(std::unique_lock<std::mutex>& guard, const std::shared_ptr<link>& relay, remote& to) {
    auto made = over(relay, to.node, tokens_.next());
    made->target = to.name.empty() ? "a host behind " + relay->theirs.name : to.name;
    set_off(guard, made, to.dialling);
  }

  /// Says hello. Releases the lock, but not before the new link is in `slot`: its end may be told at once.
  void set_off(std::unique_lock<std::mutex>& guard, const std::shared_ptr<link>& made, std::shared_ptr<link>& slot) {
    made->dialled = true;
    made->since = now();
    made->said_service = service_;
    links_.push_back(made);
    slot = made;
    const auto mine = to_frame(my_hello(made->token));
    guard.unlock();
    for (int i = 0; i < 2; ++i) {
      start(made, i);
      made->pipes[i].through->send(mine);
    }
  }

  /// A link with `other` over a relay.
  std::shared_ptr<link> over(const std::shared_ptr<link>& relay, const node_key& other, std::uint64_t token) const {
    auto out = std::make_shared<link>();
    out->token = token;
    out->relayed = other;
    out->relay = relay;
    for (std::uint8_t i = 0; i < 2; ++i)
      out->pipes[i].through = std::make_shared<relayed_pipe>(relay, relayed_head{i, other, token}, [all = all_] { return all->clock->now(); });
    return out;
  }

  // Relays.

  /// Passes on what is for another host, or takes what another one has sent us over the relay `of`.
  bool relayed_came(const std::shared_ptr<link>& of, int which, const payload& bytes) {
    const auto head = read_relayed_head(bytes.bytes());
    if (!head || head->which != which || of->relayed) return false;
    const auto inner = bytes.slice(relayed_head::bytes, bytes.size() - relayed_head::bytes);
    if (inner.empty()) return false;
    std::unique_lock guard(mutex_);
    if (const auto known = link_over(of, head->other, head->link)) {
      auto through = std::static_pointer_cast<relayed_pipe>(known->pipes[which].through);
      guard.unlock();
      through->came(inner);
      return true;
    }
    if (head->other == node_) return true;     // of a link that is over
    if (options_.relay_bytes > 0) {
      const bool spent = relayed_ + inner.size() > options_.relay_bytes;
      const auto to = spent ? nullptr : direct_link(head->other);
      if (to == nullptr || to->pipes[which].through->queued_bytes() > most_relayed) {
        if (spent) all_->count("relay_spent");
        of->send(which == 1, frame_writer(frame_kind::relay_end).put(head->other).put(head->link).done(), now());
        return true;
      }
      relayed_ += inner.size();
      all_->relayed_bytes += inner.size();
      const auto from = remote_of(of->host).node;
      passing_.insert({from, head->other, head->link});
      // Who it is from is not theirs to say.
      put(*to, which == 1, {to_bytes({static_cast<std::uint8_t>(which), from, head->link}), {inner}});
      pump(guard);
      return true;
    }
    if (listener_) return true;                // whom others can dial nobody has to reach over a relay
    // Somebody begins a link with us. It has to begin with a hello, in both pipes.
    if (std::to_integer<std::uint8_t>(inner.bytes()[0]) != static_cast<std::uint8_t>(frame_kind::hello)) return true;
    auto fresh = over(of, head->other, head->link);
    fresh->since = now();
    links_.push_back(fresh);
    auto through = std::static_pointer_cast<relayed_pipe>(fresh->pipes[which].through);
    guard.unlock();
    for (int i = 0; i < 2; ++i) start(fresh, i);
    through->came(inner);
    return true;
  }

  bool relay_ended(const std::shared_ptr<link>& of, int which, frame_reader in) {
    const auto other = in.node();
    const auto token = in.get<std::uint64_t>();
    if (!in.finished() || of->relayed) return false;
    std::unique_lock guard(mutex_);
    if (const auto ended = link_over(of, other, token)) {
      guard.unlock();
      end(ended, "the relay says that it is over");
      return true;
    }
    if (options_.relay_bytes == 0) return true;
    passing_.erase({remote_of(of->host).node, other, token});
    passing_.erase({other, remote_of(of->host).node, token});
    if (const auto to = direct_link(other))
      to->send(which == 1, frame_writer(frame_kind::relay_end).put(remote_of(of->host).node).put(token).done(), now());
    return true;
  }

  /// Our link with `other` over the relay `relay`, if there is one.
  std::shared_ptr<link> link_over(const std::shared_ptr<link>& relay, const node_key& other, std::uint64_t token) const {
    const auto found = std::find_if(links_.begin(), links_.end(),
                                    [&](const auto& l) { return l->relayed == other && l->token == token && l->relay.lock() == relay; });
    return found == links_.end() ? nullptr : *found;
  }

  remote* known(const node_key& node) {
    const auto found = std::find_if(remotes_.begin(), remotes_.end(), [&](const auto& entry) { return entry.second.node == node; });
    return found == remotes_.end() ? nullptr : &found->second;
  }

  /// Over which we pass on what is for `node`.
  std::shared_ptr<link> direct_link(const node_key& node) {
    const auto* r = known(node);
    return r != nullptr && r->up && !r->up->relayed ? r->up : nullptr;
  }

  /// Tells those who had links over us with `node` that it is gone.
  void relay_lost(const node_key& node) {
    std::lock_guard guard(mutex_);
    std::erase_if(passing_, [&](const passing& each) {
      if (each.from != node && each.to != node) return false;
      const auto& other = each.from == node ? each.to : each.from;
      if (const auto to = direct_link(other))
        for (const bool bulk : {false, true}) to->send(bulk, frame_writer(frame_kind::relay_end).put(node).put(each.link).done(), now());
      return true;
    });
  }

  hello my_hello(std::uint64_t token) const {
    hello out;
    out.link = token;
    out.name = options_.name;
    out.incarnation = options_.incarnation;
    out.address = options_.advertise;
    out.utc_ns = utc();
    out.scenario = all_->scenario;
    out.service = service_;
    return out;
  }

  void start(const std::shared_ptr<link>& of, int which) {
    of->pipes[which].through->start(
        [weak = weak_from_this(), of, which](payload bytes) {
          if (auto self = weak.lock()) self->frame_came(of, which, std::move(bytes));
        },
        [weak = weak_from_this(), of, which, through = of->pipes[which].through.get()](const std::string& why) {
          auto self = weak.lock();
          if (!self) return;
          if (through->malformed()) self->malformed(of);
          self->pipe_over(of, which, why);
        });
  }

  // -- being dialled --------------------------------------------------------

  void incoming(std::shared_ptr<pipe> made) {
    if (made->kind() == visit_kind) return visited(std::move(made));
    const int which = made->kind() == pipe_kinds[0] ? 0 : made->kind() == pipe_kinds[1] ? 1 : -1;
    auto refused = which < 0 ? refusal::not_ours : refusal::none;
    std::string name, detail;
    if (which >= 0 && all_->options.admits) refused = all_->options.admits->check(made->certificate(), utc(), name, detail);
    auto fresh = std::make_shared<link>();
    fresh->certificate_name = name;
    fresh->since = now();
    fresh->pipes[std::max(which, 0)].through = made;
    {
      std::lock_guard guard(mutex_);
      if (!closed_ && !leaving_) links_.push_back(fresh);
    }
    start(fresh, std::max(which, 0));
    if (closed_ || leaving_) return made->close();
    if (refused != refusal::none) refuse(fresh, refused, detail);
  }

  /// One question, one answer.
  void visited(std::shared_ptr<pipe> made) {
    visitor who;
    std::string detail;
    auto refused = all_->options.on_visit ? refusal::none : refusal::not_ours;
    if (refused == refusal::none && all_->options.admits) {
      refused = all_->options.admits->check(made->certificate(), utc(), who.name, detail);
      if (refused == refusal::none) who.operates = read_certificate(made->certificate())->operates;
    } else {
      who.operates = true;
    }
    {
      std::lock_guard guard(mutex_);
      if (closed_ || visits_.size() >= most_visits) return reject(made);
      visits_.emplace(made.get(), visit{made, now()});
    }
    if (refused != refusal::none) all_->count(name_of(refused));
    made->start(
        [weak = weak_from_this(), who, through = made.get()](payload bytes) {
          if (auto self = weak.lock()) self->asked(through, who, bytes);
        },
        [weak = weak_from_this(), through = made.get()](const std::string&) {
          auto self = weak.lock();
          if (!self) return;
          std::lock_guard guard(self->mutex_);
          self->visits_.erase(through);
        });
    if (refused == refusal::none) return;
    made->send(to_frame(visit_answer{false, std::string(name_of(refused)) + (detail.empty() ? "" : ", " + detail)}));
    made->finish();
  }

  void asked(pipe* through, const visitor& who, const payload& bytes) {
    std::shared_ptr<pipe> to;
    {
      std::lock_guard guard(mutex_);
      const auto found = visits_.find(through);
      if (found == visits_.end() || std::exchange(found->second.asked, true)) return;
      to = found->second.through;
    }
    if (bytes.size() > longest_question) {
      all_->count("bad_frame");
      return to->close();
    }
    const auto all = bytes.bytes();
    to->send(to_frame(all_->options.on_visit(host_, who, {reinterpret_cast<const char*>(all.data()), all.size()})));
    to->finish();
  }

  /// Says why, and hangs up.
  void refuse(const std::shared_ptr<link>& of, refusal why, const std::string& text) {
    std::vector<std::shared_ptr<pipe>> through;
    std::string who;
    {
      std::lock_guard guard(mutex_);
      if (std::exchange(of->refused_by_us, true)) return;
      of->since = now();  // who does not hang up is hung up on
      for (const auto& direction : of->pipes)
        if (direction.through) through.push_back(direction.through);
      who = of->theirs.name;
    }
    all_->count(name_of(why));
    if (who.empty() && !through.empty()) who = through[0]->peer();
    if (all_->options.on_refused) all_->options.on_refused(host_, who, why, why == refusal::other_scenario ? std::string{} : text, false);
    for (const auto& each : through) {
      each->send(frame_writer(frame_kind::refused).put(static_cast<std::uint8_t>(why)).put(std::string_view(text)).done());
      each->finish();
    }
  }

  /// The link that the pipes of this one are part of.
  std::shared_ptr<link> whole(std::shared_ptr<link> of) const {
    const auto found = joined_.find(of.get());
    return found == joined_.end() ? of : found->second;
  }

  /// A pipe is closed. What is on its way in the other one may say why: that we refused it, or that the host leaves. tick() does not wait for long.
  void pipe_over(const std::shared_ptr<link>& given, int which, const std::string& why) {
    std::shared_ptr<link> of;
    bool leaves = false;
    {
      std::lock_guard guard(mutex_);
      of = whole(given);
      of->pipes[which].over = true;
      const auto& other = of->pipes[1 - which];
      const bool more = other.through && !other.over && !of->closed;
      if (of->refused_by_us && more) return;
      leaves = of->up && !of->closed && (of->pipes[which].left || other.left);
      if (leaves && more && !other.left) return;
    }
    if (leaves) return left(of);
    end(of, why);
  }

  /// Its host has said so, and nothing more comes.
  void left(const std::shared_ptr<link>& of) {
    bury(of->host);
    if (all_->options.on_left) all_->options.on_left(host_, of->theirs.name);
  }

  /// Both pipes of a link are there once both hellos are.
  void hello_came(std::shared_ptr<link> of, int which, const payload& bytes) {
    bool other_version = false;
    auto theirs = read_hello(bytes.bytes(), other_version);
    if (!theirs) return refuse(of, other_version ? refusal::other_version : refusal::not_ours, other_version ? "it speaks another version" : "");
    if (of->dialled) return greeted(of, std::move(*theirs));
    {
      std::lock_guard guard(mutex_);
      of->theirs = *theirs;
      of->pipes[which].hello = true;
      if (of->relayed && !of->pipes[1 - which].hello) return;
    }
    if (!of->relayed) {
      std::lock_guard guard(mutex_);
      // The other pipe came as a link of its own.
      const auto half = std::find_if(links_.begin(), links_.end(), [&](const auto& l) {
        return l != of && !l->dialled && !l->up && !l->closed && l->theirs.link == theirs->link && l->theirs.name == theirs->name &&
               l->pipes[1 - which].hello && !l->pipes[which].through && l->certificate_name == of->certificate_name;
      });
      if (half == links_.end()) return;
      // The control pipe's link stays; frames of the other one are its from now on.
      auto whole = which == 0 ? of : *half;
      auto other = which == 0 ? *half : of;
      whole->pipes[1] = std::move(other->pipes[1]);
      whole->last_sent[1] = other->last_sent[1].load();
      other->pipes[1] = {};
      joined_[other.get()] = whole;
      other->closed = true;
      std::erase(links_, other);
      of = whole;
    }
    if (const auto [why, text] = check(*of); why != refusal::none) return refuse(of, why, text);
    rise(of);
  }

  /// Their hello comes on both pipes, so that on either nothing comes before it; the first of them counts.
  void greeted(const std::shared_ptr<link>& of, hello theirs) {
    std::lock_guard one_at_a_time(of->greeting);
    {
      std::lock_guard guard(mutex_);
      if (of->up || of->closed) return;
      of->theirs = std::move(theirs);
    }
    if (all_->options.admits && !of->relayed)
      for (const auto& direction : of->pipes) {
        std::string detail;
        const auto why = all_->options.admits->check(direction.through->certificate(), utc(), of->certificate_name, detail);
        if (why != refusal::none) return refuse(of, why, detail);
        if (of->certificate_name != of->theirs.name) break;   // which check() says
      }
    if (const auto [why, text] = check(*of); why != refusal::none) return refuse(of, why, text);
    rise(of);
  }

  std::pair<refusal, std::string> check(const link& of) {
    const auto& theirs = of.theirs;
    // Who is behind a relay we have from the relay, which is admitted.
    if (of.relayed && key_of(fabric::node_of(theirs.name, theirs.incarnation)) != *of.relayed)
      return {refusal::borrowed_name, "the relay knows it by another name than " + theirs.name};
    if (!of.relayed && all_->options.admits && theirs.name != of.certificate_name)
      return {refusal::borrowed_name, "the certificate is " + of.certificate_name + "'s, not " + theirs.name + "'s"};
    if (theirs.name == options_.name) {
      if (theirs.incarnation == options_.incarnation) return {refusal::ourselves, ""};
      return {refusal::name_taken, "there is a host with the name " + theirs.name};
    }
    const auto off = duration(theirs.utc_ns - utc());
    if (off > all_->options.most_clock_difference || -off > all_->options.most_clock_difference)
      return {refusal::clock_off, "its clock is " + to_string(off > duration{} ? off : -off) + (off > duration{} ? " ahead of" : " behind") + " that of " +
                                      options_.name};
    if (theirs.scenario != all_->scenario) return {refusal::other_scenario, all_->options.scenario};
    std::lock_guard guard(mutex_);
    if (const auto banned = banned_.find(theirs.name); banned != banned_.end() && banned->second > now())
      return {refusal::banned, "it sent what no host sends"};
    for (const auto& [host, r] : remotes_)
      if (r.name == theirs.name && r.node.incarnation != theirs.incarnation &&
          (r.node.incarnation > theirs.incarnation || (r.up && now() - r.up->pipes[0].heard < all_->options.detection_time)))
        return {refusal::name_taken, "there is a host with the name " + theirs.name + (r.address.empty() ? "" : ", at " + r.address)};
    return {refusal::none, {}};
  }

  /// The link can be used.
  void rise(const std::shared_ptr<link>& of) {
    const auto& theirs = of->theirs;
    const auto id = fabric::node_of(theirs.name, theirs.incarnation);
    const auto host = all_->net->host_at(id);
    all_->net->set_name(host, theirs.name);
    auto service = caf::actor_cast<caf::actor>(all_->net->address_at(id, theirs.service));
    std::vector<host_index> dead;
    std::shared_ptr<link> replaced;
    std::optional<neighbour> told;
    {
      std::lock_guard guard(mutex_);
      if (closed_ || of->closed) return;
      of->host = host;
      of->node = id;
      of->up = true;
      for (auto& direction : of->pipes) direction.heard = now();
      for (auto& sent : of->last_sent) sent = now();
      // First of all that is sent, and not before it is up: what they send once they have it is for us.
      if (!of->dialled) {
        of->said_service = service_;
        for (const bool bulk : {false, true}) of->send(bulk, to_frame(my_hello(of->token)), now());
      }
      ++all_->made;
      if (all_->options.admits) of->send(false, frame_writer(frame_kind::list_number).put(list_number_.load()).done(), now());
      // introduce() tells it to links that are up.
      if (of->said_service != service_) of->send(false, frame_writer(frame_kind::introduce).put(service_).done(), now());
      auto& r = remote_of(host);
      r.name = theirs.name;
      if (!theirs.address.empty()) r.address = theirs.address;
      if (service) r.service = std::move(service);
      // Of two that were dialled from the same side the older one is lost to that side; of two from both sides each may be in use.
      if (r.up && r.up->dialled == of->dialled) replaced = r.up;
      if (!r.up || replaced) {
        const bool first = !r.up;
        use(r, of);
        r.trying = false;
        if (first) told = as_neighbour(r);
        for (const auto ordinal : r.watching) watch_over(*of, ordinal);
        for (auto& each : r.outbox) put_counted(*of, each.bulk, std::move(each.what));
        r.outbox.clear();
        r.outbox_bytes = 0;
      }
      if (r.dialling == of) r.dialling = nullptr;
      for (auto& j : joins_)
        if (j.dialling == of) {
          j.dialling = nullptr;
          j.found = host;
          j.attempts = 0;
          j.refused_since.reset();
        }
      // Its earlier incarnations are no more.
      for (const auto& [other, old] : remotes_)
        if (other != host && old.name == theirs.name) dead.push_back(other);
    }
    for (const auto other : dead) bury(other);
    if (replaced) end(replaced, "another link took its place");
    {
      std::unique_lock guard(mutex_);
      pump(guard);
    }
    if (told && all_->options.on_up) all_->options.on_up(host_, *told);
    // A list may have come since its certificate was looked at.
    end_if_revoked(of);
  }

  // Revocation lists.

  void end_if_revoked(const std::shared_ptr<link>& of) {
    if (!all_->options.admits || of->relayed) return;
    std::string name, detail;
    if (all_->options.admits->check(of->pipes[0].through->certificate(), utc(), name, detail) != refusal::revoked) return;
    all_->count(name_of(refusal::revoked));
    end(of, detail);
  }

  void send_list(const std::shared_ptr<link>& to) {
    auto pem = all_->options.admits->list();
    // Longer ones (of about ten thousand certificates) go from hand to hand.
    if (pem.size() <= longest_text) to->send(false, frame_writer(frame_kind::list).put(std::string_view(pem)).done(), now());
  }

  /// There is a newer one, from `from` or from this machine: it counts for links that are open, and goes on to all others.
  void list_changed(const std::shared_ptr<link>& from, const std::string& text) {
    list_number_ = all_->options.admits->list_number();
    std::vector<std::shared_ptr<link>> links;
    {
      std::lock_guard guard(mutex_);
      for (const auto& each : links_)
        if (each->up) links.push_back(each);
    }
    if (all_->options.on_list) all_->options.on_list(host_, fmt::format("revocation list {} {}", list_number_.load(), text));
    for (const auto& each : links) end_if_revoked(each);
    for (const auto& each : links)
      if (each != from && each->up && !each->closed) send_list(each);
  }

  void list_came(const std::shared_ptr<link>& of, const std::string& pem) {
    std::string detail;
    switch (all_->options.admits->offer(pem, detail)) {
      case list_news::taken: list_changed(of, fmt::format("came from {}{}", of->theirs.name, detail.empty() ? "" : "; it cannot be kept: " + detail)); break;
      case list_news::known: break;
      case list_news::old: all_->count("old_list"); break;
      case list_news::forged: all_->count("forged_list"); break;
    }
  }

  // Pacing.

  bool paced() const noexcept { return options_.uplink > 0; }

  /// Sends it, or has it wait for its turn.
  void put(link& to, bool bulk, frame what) {
    if (!bulk || !paced()) return to.send(bulk, std::move(what), now());
    to.waiting_bytes += what.size();
    to.waiting.push_back(std::move(what));
  }

  /// The same for a frame of ours.
  void put_counted(link& to, bool bulk, frame what) {
    ++all_->frames_out;
    all_->bytes_out += what.size();
    to.sent += what.size();
    put(to, bulk, std::move(what));
  }

  /// Sends what is due, a piece to each link in turn, and comes back when more is. Releases the lock.
  void pump(std::unique_lock<std::mutex>& guard) {
    if (!paced() || pump_planned_ || closed_) return guard.unlock();
    // What the clock was late by is made up for, up to a little.
    line_free_ = std::max(line_free_, now() - duration(std::chrono::milliseconds(5)));
    while (line_free_ <= now()) {
      auto next = std::find_if(links_.begin(), links_.end(), [](const auto& l) { return !l->waiting.empty(); });
      if (next == links_.end()) return guard.unlock();
      auto to = *next;
      auto what = std::move(to->waiting.front());
      to->waiting.pop_front();
      to->waiting_bytes -= what.size();
      line_free_ += from_seconds(8 * static_cast<double>(what.size()) / (paced_share * options_.uplink));
      // The others first, next time.
      std::rotate(next, next + 1, links_.end());
      to->send(true, std::move(what), now());
    }
    pump_planned_ = true;
    const auto when = line_free_;
    guard.unlock();
    all_->clock->at(when, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      std::unique_lock lock(self->mutex_);
      self->pump_planned_ = false;
      self->pump(lock);
    });
  }

  /// Its process is over for good.
  void bury(host_index host) {
    std::vector<std::shared_ptr<link>> links;
    {
      std::lock_guard guard(mutex_);
      for (const auto& each : links_)
        if (each->host == host) links.push_back(each);
    }
    for (const auto& each : links) end(each, "it has ended");
    {
      std::lock_guard guard(mutex_);
      if (const auto found = remotes_.find(host); found != remotes_.end()) {
        use(found->second, nullptr);
        remotes_.erase(found);
      }
      for (auto& j : joins_)
        if (j.found == host) j.found = no_host;
    }
    all_->net->gone(host_, host, {}, true);
    all_->net->remote_died(host);
  }

  /// A link is closed, or is closed now.
  void end(const std::shared_ptr<link>& given, const std::string& why) {
    std::shared_ptr<link> of;
    std::optional<neighbour> lost;
    host_index told = no_host;
    bool fatal = false;
    {
      std::lock_guard guard(mutex_);
      of = whole(given);
      joined_.erase(given.get());
      if (of->closed.exchange(true)) return;
      std::erase(links_, of);
      std::erase_if(joined_, [&](const auto& entry) { return entry.second == of; });
      if (!of->dialled && !of->up && !of->refused_by_us && !closed_ && !leaving_) all_->count(name_of(refusal::no_hello));
      if (of->up) {
        const auto found = remotes_.find(of->host);
        if (found != remotes_.end() && found->second.up == of) {
          auto& r = found->second;
          const auto other = std::find_if(links_.begin(), links_.end(), [&](const auto& l) { return l->up && l->host == of->host; });
          use(r, other == links_.end() ? nullptr : *other);
          if (r.up) {
            for (const auto ordinal : r.watching) watch_over(*r.up, ordinal);
          } else {
            ++all_->lost;
            lost = as_neighbour(r);
            told = of->host;
            r.watching.clear();
          }
        }
      }
      for (auto& [host, r] : remotes_)
        if (r.dialling == of) {
          r.dialling = nullptr;
          if (of->refused != refusal::none) r.next_try = now() + longest_wait;
        }
      for (auto& j : joins_)
        if (j.dialling == of) {
          j.dialling = nullptr;
          j.next_try = now() + wait_after(++j.attempts);
          if (of->refused == refusal::name_taken) {
            if (!j.refused_since) j.refused_since = now();
            fatal = now() - *j.refused_since > 3 * all_->options.detection_time;
          }
        }
    }
    std::vector<std::shared_ptr<link>> over;
    {
      std::lock_guard guard(mutex_);
      for (const auto& each : links_)
        if (each->relay.lock() == of) over.push_back(each);
    }
    for (const auto& each : over) end(each, "the relay is gone");
    // Who had links over us to this host is told.
    if (options_.relay_bytes > 0 && told != no_host) relay_lost(key_of(all_->net->node_of(told)));
    for (auto& direction : of->pipes)
      if (direction.through) direction.through->close();
    if (told != no_host) all_->net->gone(host_, told, {}, false);
    if (lost && all_->options.on_down) all_->options.on_down(host_, *lost, why);
    if (!of->dialled || of->up || !all_->options.on_refused) return;
    const auto says = of->refused;
    fatal = fatal || says == refusal::other_version || says == refusal::clock_off || says == refusal::other_scenario || says == refusal::not_admitted ||
            says == refusal::expired || says == refusal::revoked || says == refusal::borrowed_name;
    all_->options.on_refused(host_, of->target, says, says == refusal::none ? why : of->refused_text, fatal);
  }

  // -- what comes -----------------------------------------------------------

  void frame_came(std::shared_ptr<link> of, int which, payload bytes) {
    if (silent_ || bytes.empty()) return;
    {
      std::lock_guard guard(mutex_);
      of = whole(std::move(of));
      if (of->closed || of->refused_by_us) return;
      of->pipes[which].heard = now();
    }
    ++all_->frames_in;
    all_->bytes_in += bytes.size();
    of->received += bytes.size();
    const auto kind = static_cast<frame_kind>(std::to_integer<std::uint8_t>(bytes.bytes()[0]));
    if (!of->up) {
      if (kind == frame_kind::refused) return refused_came(of, bytes);
      // Before it is known who speaks nothing else counts, and not much of it.
      if (kind == frame_kind::hello && bytes.size() <= 4096 && !of->pipes[which].hello) return hello_came(of, which, bytes);
      return refuse(of, refusal::not_ours, "");
    }
    if (!handle(of, which, kind, bytes)) misbehaved(of, "bad_frame");
    bound_rate(*of, which);
  }

  /// Reading waits for the end of a second in which too many frames came, as if the window were full. What comes over a relay is counted there.
  void bound_rate(link& of, int which) {
    if (of.relayed) return;
    auto& direction = of.pipes[which];
    if (now() - direction.counted_from >= std::chrono::seconds(1)) {
      direction.counted_from = now();
      direction.frames = 0;
    }
    if (++direction.frames < all_->options.most_frames) return;
    // What comes with this one counts for the next second.
    direction.frames = 0;
    direction.counted_from += std::chrono::seconds(1);
    const auto full = std::max(all_->options.control.window_bytes, all_->options.bulk.window_bytes) + 1;   // a listener has one window for both
    direction.through->window().add(full);
    ++all_->held_back;
    all_->clock->at(direction.counted_from, [through = direction.through, full] { through->window().remove(full); });
  }

  void refused_came(const std::shared_ptr<link>& of, const payload& bytes) {
    frame_reader in(bytes.bytes());
    in.get<std::uint8_t>();
    const auto why = in.get<std::uint8_t>();
    auto text = in.text(longest_text);
    if (!in.finished() || why == 0 || why >= refusal_names.size()) return end(of, "it refused us");
    std::lock_guard guard(mutex_);
    if (of->refused != refusal::none) return;
    of->refused = static_cast<refusal>(why);
    if (of->refused == refusal::other_scenario && all_->options.difference) text = all_->options.difference(all_->options.scenario, text);
    of->refused_text = std::move(text);
  }

  /// What came was not made of frames.
  void malformed(std::shared_ptr<link> of) {
    {
      std::lock_guard guard(mutex_);
      of = whole(std::move(of));
      // Who has not proved a name yet is not banned under it.
      if (!of->up && (of->closed || std::exchange(of->refused_by_us, true))) return;
    }
    if (of->up) return misbehaved(of, "bad_frame");
    all_->count(name_of(refusal::not_ours));
  }

  /// It is hung up on and not listened to for a while, because of what is counted as `why`.
  void misbehaved(const std::shared_ptr<link>& of, const char* why) {
    if (of->misbehaved.exchange(true)) return;  // in the other pipe, at the same time
    all_->count(why);
    {
      std::lock_guard guard(mutex_);
      banned_[of->theirs.name] = now() + all_->options.ban_time;
    }
    end(of, "it sent what no host sends");
  }

  /// False: no correct host sends that.
  bool handle(const std::shared_ptr<link>& of, int which, frame_kind kind, const payload& bytes) {
    frame_reader in(bytes.bytes());
    in.get<std::uint8_t>();
    switch (kind) {
      case frame_kind::message:
      case frame_kind::piece: return part_came(of, which, kind, bytes);
      case frame_kind::ping:
        if (in.finished()) return true;
        if (const auto stamp = in.get<std::uint64_t>(); in.finished()) {
          std::lock_guard guard(mutex_);
          // Who asks and does not read is not answered.
          if (of->pipes[which].through->queued_bytes() < most_answers) of->send(which == 1, frame_writer(frame_kind::pong).put(stamp).done(), now());
          return true;
        }
        return false;
      case frame_kind::pong: {
        const auto stamp = in.get<std::uint64_t>();
        if (!in.finished()) return false;
        pong_came(*of, stamp);
        return true;
      }
      case frame_kind::hello: return which == 0 || of->dialled;  // a second one: the pipes crossed
      case frame_kind::refused: return true;
      case frame_kind::watch: {
        const auto ordinal = in.get<std::uint32_t>();
        if (!in.finished()) return false;
        {
          std::lock_guard guard(mutex_);
          if (of->watched.size() >= most_watched) return false;
          of->watched.insert(ordinal);
        }
        if (!all_->net->lives({host_, ordinal})) actor_ended(ordinal);
        return true;
      }
      case frame_kind::ended: {
        const auto ordinal = in.get<std::uint32_t>();
        if (!in.finished()) return false;
        {
          std::lock_guard guard(mutex_);
          if (const auto r = remotes_.find(of->host); r != remotes_.end()) r->second.watching.erase(ordinal);
        }
        all_->net->gone(host_, of->host, ordinal, true);
        return true;
      }
      case frame_kind::where_is: {
        const auto node = in.node();
        if (!in.finished()) return false;
        std::lock_guard guard(mutex_);
        if (const auto* r = known(node); r != nullptr && (!r->address.empty() || (options_.relay_bytes > relayed_ && direct_link(node))))
          of->send(false, frame_writer(frame_kind::node_at).put(node).put(std::string_view(r->name)).put(std::string_view(r->address)).done(), now());
        return true;
      }
      case frame_kind::node_at: {
        const auto node = in.node();
        const auto name = in.text(63);
        const auto where = in.text(300);
        if (!in.finished()) return false;
        std::unique_lock guard(mutex_);
        auto* r = known(node);
        if (r == nullptr || !r->address.empty() || (!where.empty() && !parse_address(where))) return true;
        // Who does not know where passes on.
        if (where.empty())
          r->relay = of->host;
        else
          r->address = where;
        if (r->name.empty()) r->name = name;
        if (r->trying && !r->up && !r->dialling) {
          r->next_try = now();
          try_for(guard, *r);
        }
        return true;
      }
      case frame_kind::introduce: {
        const auto number = in.get<std::uint64_t>();
        if (!in.finished()) return false;
        auto service = caf::actor_cast<caf::actor>(all_->net->address_at(of->node, number));
        std::optional<neighbour> told;
        {
          std::lock_guard guard(mutex_);
          if (const auto r = remotes_.find(of->host); r != remotes_.end()) {
            r->second.service = std::move(service);
            told = as_neighbour(r->second);
          }
        }
        if (told && all_->options.on_up) all_->options.on_up(host_, *told);
        return true;
      }
      case frame_kind::list_number: {
        const auto number = in.get<std::uint64_t>();
        if (!in.finished()) return false;
        if (all_->options.admits && number < list_number_) send_list(of);
        return true;
      }
      case frame_kind::list: {
        const auto pem = in.text(longest_text);
        if (!in.finished()) return false;
        if (all_->options.admits) list_came(of, pem);
        return true;
      }
      case frame_kind::relayed: return relayed_came(of, which, bytes);
      case frame_kind::relay_end: return relay_ended(of, which, in);
      case frame_kind::leaving: {
        if (!in.finished()) return false;
        {
          std::lock_guard guard(mutex_);
          of->pipes[which].left = true;
          const auto& other = of->pipes[1 - which];
          if (!other.left && !other.over) return true;
        }
        left(of);
        return true;
      }
      default: return false;
    }
  }

  bool part_came(const std::shared_ptr<link>& of, int which, frame_kind kind, const payload& bytes) {
    auto& direction = of->pipes[which];
    std::optional<message_assembly::whole> whole;
    if (!(kind == frame_kind::message ? direction.messages.begin(bytes, whole) : direction.messages.piece(bytes, whole))) return false;
    if (!whole) return true;
    direction.through->window().add(whole->bytes);
    message_came(of, which, whole->head, whole->body, whole->bytes);
    return true;
  }

  void message_came(const std::shared_ptr<link>& of, int which, const message_head& head, const payload& body, std::size_t charged) {
    const auto& through = of->pipes[which].through;
    const auto aligned = (std::size_t{head.binary} + 7) / 8 * 8;
    std::size_t unheard = 0;
    auto content = decode(*all_->system, *all_->net, body.bytes().first(head.binary), body.slice(aligned, body.size() - aligned), all_->options.acceptable,
                          &unheard);
    const bool too_many = unheard > 0 && names_too_many(of->theirs.name, unheard);
    if (!content || too_many) {
      through->window().remove(charged);
      return misbehaved(of, content ? "too_many_hosts" : "bad_message");
    }
    caf::strong_actor_ptr sender;
    if (head.from != nobody) sender = all_->net->address_at(of->node, caf::actor_id{head.from} + 1);
    all_->net->deliver({of->host, head.from == nobody ? 0 : head.from}, {host_, head.to},
                       caf::mailbox_element_ptr{new arrived(std::move(sender), std::move(*content), through, charged,
                                                                {all_, &all_->unhandled})}, head.wire_bytes);
  }

  /// Also counts them.
  bool names_too_many(const std::string& name, std::size_t unheard) {
    std::lock_guard guard(mutex_);
    return (named_by_[name] += unheard) > all_->options.most_named;
  }

  // -- time -----------------------------------------------------------------

  void schedule() {
    all_->clock->at(now() + tick_, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self) return;
      self->tick();
      self->schedule();
    });
  }

  void tick() {
    if (all_->options.admits && !silent_ && all_->options.admits->list_number() > list_number_) list_changed(nullptr, "was put into the folder of keys");
    std::vector<std::pair<std::shared_ptr<link>, const char*>> over;
    std::vector<std::pair<host_index, std::size_t>> given_up;
    std::vector<host_index> try_again;
    std::vector<std::size_t> join_again;
    std::vector<std::shared_ptr<pipe>> visited_long;
    const auto silence = all_->options.detection_time;
    {
      std::lock_guard guard(mutex_);
      if (closed_ || silent_) return;
      // Was this process itself stopped? Then nobody else is to blame yet.
      const bool stopped = now() - std::exchange(last_tick_, now()) > silence / 2;
      for (const auto& each : links_) {
        if (!each->up) {
          if (now() - each->since > all_->options.hello_time) {
            over.emplace_back(each, "no answer");
          }
          continue;
        }
        measure(*each);
        for (int i = 0; i < 2; ++i) {
          auto& direction = each->pipes[i];
          if (stopped) direction.heard = std::max(direction.heard, now() - silence / 2);
          if (now() - each->last_sent[i].load() >= silence / 4) each->send(i == 1, frame_writer(frame_kind::ping).done(), now());
          if (now() - direction.heard > silence && !direction.through->held_back()) {
            over.emplace_back(each, "it has been silent");
            break;
          }
        }
      }
      for (auto& [host, r] : remotes_) {
        if (!r.trying || r.up) continue;
        if (now() - r.trying_since > silence) {
          given_up.emplace_back(host, r.outbox.size());
          r.trying = false;
          r.outbox.clear();
          r.outbox_bytes = 0;
          r.watching.clear();
        } else if (!r.dialling && r.next_try <= now()) {
          try_again.push_back(host);
        }
      }
      for (std::size_t i = 0; i < joins_.size(); ++i) {
        const auto& j = joins_[i];
        const auto found = remotes_.find(j.found);
        if (!j.dialling && j.next_try <= now() && (found == remotes_.end() || !found->second.up)) join_again.push_back(i);
      }
      std::erase_if(banned_, [&](const auto& entry) { return entry.second <= now(); });
      for (const auto& [through, visit] : visits_)
        if (now() - visit.since > all_->options.hello_time) visited_long.push_back(visit.through);
    }
    for (const auto& each : visited_long) each->close();
    for (const auto& [each, why] : over) end(each, why);
    for (const auto& [host, messages] : given_up) {
      all_->messages_lost += messages;
      all_->net->gone(host_, host, {}, false);
    }
    for (const auto host : try_again) {
      std::unique_lock guard(mutex_);
      if (const auto found = remotes_.find(host); found != remotes_.end() && found->second.trying && !found->second.up) try_for(guard, found->second);
    }
    for (const auto i : join_again) {
      std::unique_lock guard(mutex_);
      if (i >= joins_.size() || joins_[i].dialling) continue;
      joins_[i].next_try = now() + all_->options.hello_time;
      dial(guard, joins_[i].where, joins_[i].dialling);
    }
  }

  const std::shared_ptr<shared> all_;
  const host_index host_;
  host_options options_;
  const node_key node_;
  const duration tick_;
  std::unique_ptr<listener> listener_;
  std::atomic<bool> silent_{false}, leaving_{false}, closed_{false};
  std::atomic<std::uint64_t> list_number_{0};  // of the revocation list that links were looked at by
  mutable std::mutex mutex_;                   // guards all that follows
  rng tokens_;
  std::uint64_t service_ = 0;
  std::vector<std::shared_ptr<link>> links_;
  std::map<link*, std::shared_ptr<link>> joined_;   // pipes that came as a link and are part of another one now
  std::map<host_index, remote> remotes_;
  std::vector<joining> joins_;
  std::map<std::string, duration> banned_;     // until when, by name
  std::map<std::string, std::size_t> named_by_;   // hosts that nobody had heard of before
  duration last_tick_{};
  duration line_free_{};                       // paced: when the next piece may be sent
  bool pump_planned_ = false;
  std::uint64_t relayed_ = 0;                  // of relay_bytes
  struct passing {
    node_key from, to;
    std::uint64_t link;
    auto operator<=>(const passing&) const = default;
  };
  std::set<passing> passing_;                  // links that go over us
  struct visit {
    std::shared_ptr<pipe> through;
    duration since{};
    bool asked = false;
  };
  std::map<pipe*, visit> visits_;
};

// -- network --------------------------------------------------------------------------------------

network::network(wire_options options) : shared_(std::make_shared<shared>()) {
  const auto hash = hash_of(std::as_bytes(std::span(options.scenario)));
  std::memcpy(shared_->scenario.data(), hash.bytes.data(), shared_->scenario.size());
  shared_->options = std::move(options);
}

network::~network() { close(); }

void network::use(caf::actor_system& system, fabric& net) {
  shared_->system = &system;
  shared_->net = &net;
  shared_->clock = &coordinator::of(system);
}

void network::close() {
  std::map<host_index, std::shared_ptr<station>> all;
  {
    std::lock_guard guard(mutex_);
    all.swap(stations_);
  }
  for (auto& [host, each] : all) each->close();
}

result<void> network::open(host_index host, host_options options) {
  auto made = std::make_shared<station>(shared_, host, std::move(options));
  if (auto done = made->open(); !done) return done;
  std::lock_guard guard(mutex_);
  stations_[host] = std::move(made);
  return {};
}

std::shared_ptr<network::station> network::station_of(host_index host) const {
  std::lock_guard guard(mutex_);
  const auto found = stations_.find(host);
  return found == stations_.end() ? nullptr : found->second;
}

address network::listens_at(host_index host) const {
  const auto at = station_of(host);
  return at ? at->listens_at() : address{};
}
void network::introduce(host_index host, const caf::actor& service) {
  if (const auto at = station_of(host)) at->introduce(service);
}
void network::join(host_index host, const address& where) {
  if (const auto at = station_of(host)) at->join(where);
}
void network::leave(host_index host) {
  const auto at = station_of(host);
  if (!at) return;
  at->leave();
  // A process that ends takes what is queued with it, and then others would wait for it.
  const auto limit = std::chrono::steady_clock::now() + std::min<duration>(shared_->options.detection_time, std::chrono::seconds(2));
  while (at->has_links() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}
std::vector<neighbour> network::neighbours(host_index host) const {
  const auto at = station_of(host);
  return at ? at->neighbours() : std::vector<neighbour>{};
}

wire_counts network::counts() const {
  wire_counts out;
  out.links_made = shared_->made;
  out.links_lost = shared_->lost;
  out.frames_in = shared_->frames_in;
  out.frames_out = shared_->frames_out;
  out.bytes_in = shared_->bytes_in;
  out.bytes_out = shared_->bytes_out;
  out.messages_lost = shared_->messages_lost;
  out.relayed_bytes = shared_->relayed_bytes;
  out.links_open = shared_->linked;
  out.held_back = shared_->held_back;
  out.unhandled_bytes = shared_->unhandled;
  for (const auto name : gate_refusal_names) out.connections_refused[std::string(name)] = 0;
  {
    std::lock_guard guard(shared_->mutex);
    const auto of = [this](std::string_view name) {
      const auto found = shared_->refused.find(std::string(name));
      return found == shared_->refused.end() ? 0 : found->second;
    };
    for (const auto name : refusal_names)
      if (name != "none") out.connections_refused[std::string(name)] = of(name);
    for (const auto name : frame_refusal_names) out.frames_refused[std::string(name)] = of(name);
  }
  auto all = [this] {
    std::lock_guard guard(mutex_);
    return stations_;
  }();
  for (const auto& [host, each] : all) each->add_counts(out);
  return out;
}

void network::carry(netem::endpoint from, netem::endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes, bool bulk) {
  if (const auto at = station_of(from.host)) at->carry(from, to, std::move(element), bytes, bulk);
}
void network::watch(host_index from, netem::endpoint of) {
  if (const auto at = station_of(from)) at->watch(of);
}
void network::ended(netem::endpoint of) {
  if (const auto at = station_of(of.host)) at->actor_ended(of.ordinal);
}
void network::killed(host_index host, kill_scope scope) {
  const auto at = station_of(host);
  if (!at) return;
  at->fall_silent();
  if (scope == kill_scope::machine) return;
  {
    std::lock_guard guard(mutex_);
    stations_.erase(host);
  }
  at->close();
}

}  // namespace shoal::netem::wire
