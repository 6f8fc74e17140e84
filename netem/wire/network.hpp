// The real network between hosts: implements netem/carrier.hpp over TCP. Each host of this process
// listens, or only dials. It has a link to each host that it talks to. Hosts are known by name and
// incarnation.
//
// - Link: two pipes (pipe.hpp), one for control and one for bulk. The pipe for bulk may have
//   several connections (striped_pipe.hpp). The side that has a message to send dials, and the link
//   serves both directions. Both sides may dial at the same time. The
//   first frame on each pipe is a hello; messages follow. A link closes when either pipe closes, or
//   when the other side is silent for the detection time in spite of pings. Frames in flight are
//   then lost, and observers of the other host's actors hear that it is unreachable. A later
//   message dials again with back-off, and waits until the detection time is over. It does not wait
//   for a host at whose address nothing listens any more: two refused connections end the wait.
// - Hello: the sender's name, incarnation, address, clock, scenario, and its certificate if there
//   are keys. The receiver refuses another protocol, a clock that is off, another scenario, a bad
//   or borrowed certificate, and a name that another living process has. Both sides see the reason.
//   A refusal counts only if the refusing side's certificate is admitted. It is fatal only if this
//   host can join nowhere (join_list::lost). A revoked host believes the moderator's list alone.
// - End of actors: a host tells the observers of its actors that an actor has ended. A restarted
//   process is a new incarnation, and messages to the old one are lost.
// - Relay: two hosts that cannot listen may have a link over a third host that offers it. Their
//   frames travel inside frames of their links to the relay. With keys, the two ends authenticate
//   each other and protect the frames (end_to_end.hpp). The relay can then only drop
//   frames. Without keys, the relay states the sender of each frame. A host takes relayed frames
//   only from a host that offered to relay in its hello. Relayed bytes count against a budget. The
//   relay ends the link when the budget is spent or one end is gone.
// - Revocation list: with keys, each host tells the number of its list, and a host with a newer
//   list sends it. A new list takes effect on open links as well, is saved, and is passed on
//   (admission::offer).
// - Lookup: an address in a message identifies a host by node id (netem/fabric.hpp) and does not
//   say where it listens. A host asks its linked hosts for the address of a host that it does not
//   know.
//
// The network checks all incoming bytes before use: frames by their lengths, and messages by their
// types, which are never CAF's own. A message's sender must be an actor of the other end of the
// link. A host that sends what no correct host sends is counted and banned for a while.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/carrier.hpp"
#include "netem/wire/admission.hpp"
#include "netem/wire/end_to_end.hpp"
#include "netem/wire/listener.hpp"
#include "netem/wire/refusal.hpp"

#include <caf/actor.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::netem {
class fabric;
class coordinator;
} // namespace shoal::netem

namespace shoal::netem::wire {

/// Reasons to refuse a frame of a linked host.
inline constexpr std::array<std::string_view, 11> frame_refusal_names{
    "bad_frame",   "bad_message",     "too_many_hosts", "send_queue_full",
    "relay_spent", "incomplete_full", "relay_full",     "bad_seal",
    "old_list",    "forged_list",     "failed_callback"};
/// Reasons for which the gate closes a connection.
inline constexpr std::array<std::string_view, 4> gate_refusal_names{"silent", "garbage", "too_many",
                                                                    "handshake"};

/// A host at the other end of a link.
struct connected_peer {
  host_index host = no_host;
  std::string name;
  std::string address; ///< empty: the host cannot be dialled
  /// The actor that introduced the host (its DHT node); may be empty.
  caf::actor service;
  // The link to the host:
  std::string relay;              ///< the host over which the link goes; empty: none
  duration round_trip{};          ///< the latest of small frames; 0: not measured yet
  double sends = 0, receives = 0; ///< bits/s sent and received over the last minute
};

/// The sender of a control request, who is not a host of the swarm; see send_control_request.hpp.
struct control_client {
  std::string name;      ///< empty without keys
  bool operates = false; ///< may end hosts; everybody may if there are no keys
};
struct control_answer {
  bool done = true; ///< false: `text` says why not
  std::string text;
};

struct wire_options {
  duration detection_time = std::chrono::seconds(5);
  /// The time limit from the opening of a stream to its hello.
  duration hello_time = std::chrono::seconds(5);
  /// The first ban of a host that breaks the protocol; see fault_record.hpp.
  duration ban_time = std::chrono::seconds(60);
  duration most_clock_difference = std::chrono::minutes(2);
  std::size_t most_queued = std::size_t{512} << 20;       ///< bytes that wait for one host
  std::uint64_t most_incomplete = std::uint64_t{1} << 30; ///< bytes of incomplete messages in all
  /// The frames of one pipe in a second; reading pauses beyond that.
  std::uint64_t most_frames = 50'000;
  pipe_options control{std::size_t{2} << 20};
  pipe_options bulk;
  /// The connections that carry bulk between two hosts, 1 to most_stripes (striped_pipe.hpp). The
  /// host that dials opens so many.
  std::size_t bulk_connections = 1;
  /// The unknown hosts that the messages of one host may name at once, and again in each hour. The
  /// fabric keeps each of them.
  std::size_t most_named = 16'384;
  std::string scenario; ///< the text on which all hosts must agree
  /// Describes the difference between two such texts in one line.
  std::function<std::string(const std::string& mine, const std::string& theirs)> difference;
  /// Whether hosts may send each other messages of this type, given by its portable name.
  std::function<bool(std::string_view type)> acceptable;
  std::function<std::int64_t()> utc_ns;
  /// Null: the links are neither encrypted nor authenticated.
  std::shared_ptr<const tls_credentials> credentials;
  std::shared_ptr<const admission> admits; ///< set if there are credentials
  own_keys keys;                           ///< set if there are credentials
  /// Whether the owner of this key (32 bytes) must not take part. Links with it end within seconds.
  std::function<bool(const std::string& identity)> banned;
  // The callbacks below run on any thread, with no lock held.
  std::function<void(host_index mine, const connected_peer& other)> on_up;
  std::function<void(host_index mine, const connected_peer& other, const std::string& why)> on_down;
  /// Answers control requests. If empty, the host answers none.
  std::function<control_answer(host_index mine, const control_client& who,
                               const std::string& question)>
      on_control_request;
  /// The host `name` said that it leaves permanently.
  std::function<void(host_index mine, const std::string& name)> on_left;
  /// There is a newer revocation list.
  std::function<void(host_index mine, const std::string& text)> on_revocation_list;
  /// `fatal`: another attempt with the same settings would fail again.
  std::function<void(host_index mine, const std::string& where, refusal why,
                     const std::string& text, bool fatal)>
      on_refused;
};

struct host_options {
  std::string name;
  std::uint32_t incarnation = 0;
  std::optional<address> listen; ///< none: the host only dials
  std::string advertise;         ///< the host:port that others dial; empty: the listening address
  /// The rate of the uplink in bits per second; 0: not limited. Bulk goes out a little slower than
  /// the line, to each receiver in turn. So small messages do not wait in a queue, and receivers
  /// get equal shares.
  double uplink = 0;
  std::uint64_t relay_bytes = 0; ///< the budget for bytes that the host relays
};

/// Totals since the start.
struct network_counts {
  std::uint64_t links_open = 0; ///< hosts with an open link, now
  std::uint64_t links_made = 0, links_lost = 0;
  std::uint64_t frames_in = 0, frames_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t relayed_bytes = 0; ///< passed on for other hosts
  std::uint64_t messages_lost = 0; ///< lost with their link, or without a receiver
  /// Counts by reason, with zeros: the gate's reasons, and refusals of links.
  std::map<std::string, std::uint64_t> connections_refused;
  std::map<std::string, std::uint64_t> frames_refused; ///< by reason, with zeros
  std::uint64_t held_back = 0;       ///< how often a link sent most_frames within a second
  std::uint64_t unhandled_bytes = 0; ///< received and not handled yet
};

struct context;
class local_host;

class network final : public carrier {
public:
  explicit network(wire_options options);
  ~network() override;

  /// Must be called first. `net` has this network as its carrier.
  void use(caf::actor_system& system, fabric& net);
  /// Stops all sending and receiving. Returns when none of the network's callbacks runs any more,
  /// so a callback must not call it. Must be called before `net` and its actor system are
  /// destroyed.
  void close();

  /// Opens a host of this process. Errors: as listener::open.
  result<void> open(host_index host, host_options options);
  address listens_at(host_index host) const;
  /// Sets the actor that introduces `host`, and sends it to all linked hosts.
  void introduce(host_index host, const caf::actor& service);
  /// Links `host` to the host at `where`, with repeated attempts until a link is up.
  void join(host_index host, const address& where);
  /// Tells all linked hosts that `host` leaves permanently. Returns when they have the message, or
  /// after the detection time (at most 2 s).
  void leave(host_index host);
  std::vector<connected_peer> connected_peers(host_index host) const;
  network_counts counts() const;

  void carry(netem::endpoint from, netem::endpoint to, caf::mailbox_element_ptr element,
             std::uint64_t bytes, bool bulk) override;
  void watch(host_index from, netem::endpoint of) override;
  void ended(netem::endpoint of) override;
  void killed(host_index host, kill_scope scope) override;

private:
  std::shared_ptr<local_host> host_at(host_index host) const;

  std::shared_ptr<context> shared_;
  mutable std::mutex mutex_; // guards the members below
  std::map<host_index, std::shared_ptr<local_host>> hosts_;
  std::vector<std::shared_ptr<local_host>> killed_; // until close()
};

} // namespace shoal::netem::wire
