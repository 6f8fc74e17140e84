// The real network between hosts: what netem/carrier.hpp asks for, over gRPC. Each host of this
// process listens (or only dials), has a link to each host that it talks to, and is known by its
// name and incarnation.
//
//   link    two pipes (pipe.hpp), one for control and one for bulk. Whoever has something to say
//   first dials; a link serves both ways,
//           also when both dialled. First frames are hellos, on both pipes; then messages follow. A
//           link that says nothing for the detection time (there are pings) is given up, and so is
//           one that closes: what was on its way is lost, and observers of the other host's actors
//           are told that it is unreachable. What is sent later dials again, with back-off; until
//           the detection time is over what is sent waits.
//   hello   who speaks (name, incarnation, address, its certificate if there are keys), its clock,
//   and the scenario that it runs. Refused,
//           with a reason that both sides see: another protocol, a clock that is off, another
//           scenario (naming the first difference), a certificate that is not good or not its own,
//           a name that another living process has.
//   death   an actor's end is told to those who watch it; a process that comes back is a new
//   incarnation, and what was
//           said to the old one is lost.
//   relay   hosts that can both only dial have a link over a third one, if that offers it: its
//   frames go in frames of the links to the relay, which
//           says whom they are from, and which both have to trust for that. What is passed on
//           counts against a budget; when that is spent, or one of the two is gone, the relay says
//           so, and the link is over.
//   list    of the certificates that were taken back: with keys each says the number of the list
//   that it has, and who has a newer one sends it.
//           It counts from then on, for links that are open as well, is kept, and is passed on
//           (admission::offer).
//   find    an address in a message says who (netem/fabric.hpp: node id), not where: who is not
//   known is asked for at those
//           whom we have links with.
//
// What others send is checked before it is used: frames by their lengths, messages by their types
// (never CAF's own) and by who may send them, which is the other end of the link alone. Who sends
// what no correct host does is counted and cut off for a while.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/carrier.hpp"
#include "netem/wire/admission.hpp"
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

/// What was wrong with what a linked host sent.
inline constexpr std::array<std::string_view, 7> frame_refusal_names{
    "bad_frame",   "bad_message", "too_many_hosts", "send_queue_full",
    "relay_spent", "old_list",    "forged_list"};
/// Why the gate closed a connection.
inline constexpr std::array<std::string_view, 4> gate_refusal_names{"silent", "garbage", "too_many",
                                                                    "handshake"};

/// What is known of the other side of a link.
struct neighbour {
  host_index host = no_host;
  std::string name;
  std::string address; ///< empty: cannot be dialled
  caf::actor service;  ///< what it introduced itself with (its DHT node); may be empty
  // Of the link with it:
  std::string relay;              ///< the host over which it goes; empty: none
  duration round_trip{};          ///< of small frames, lately; 0: not measured yet
  double sends = 0, receives = 0; ///< bits/s that were sent and have come, over the last minute
};

/// Who asks a host something, without being one: see visit.hpp.
struct visitor {
  std::string name;      ///< empty without keys
  bool operates = false; ///< may end hosts; everybody may where there are no keys
};
struct visit_answer {
  bool done = true; ///< false: `text` says why not
  std::string text;
};

struct wire_options {
  duration detection_time = std::chrono::seconds(5);
  duration hello_time =
      std::chrono::seconds(5); ///< from the beginning of a stream until it has said who it is
  duration ban_time = std::chrono::seconds(60);
  duration most_clock_difference = std::chrono::minutes(2);
  std::size_t most_queued = std::size_t{512} << 20; ///< bytes that wait for one host
  std::uint64_t most_frames =
      50'000; ///< of each pipe of a link in a second; beyond it reading waits
  pipe_options control{std::size_t{2} << 20, std::size_t{1} << 18};
  pipe_options bulk;
  std::size_t most_named =
      16'384; ///< hosts that nobody had heard of, in the messages of one host ever: each is kept
  std::string scenario; ///< what all hosts have to agree about, as text
  /// What differs between two such texts, in one line.
  std::function<std::string(const std::string& mine, const std::string& theirs)> difference;
  /// Whether messages of this type (its portable name) go between hosts.
  std::function<bool(std::string_view type)> acceptable;
  std::function<std::int64_t()> utc_ns;
  std::shared_ptr<grpc::ServerCredentials>
      server_credentials; ///< null: neither encrypted nor authenticated
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials;
  std::shared_ptr<const admission> admits; ///< with credentials
  // Told on any thread, no lock held.
  std::function<void(host_index mine, const neighbour& other)> on_up;
  std::function<void(host_index mine, const neighbour& other, const std::string& why)> on_down;
  std::function<visit_answer(host_index mine, const visitor& who, const std::string& question)>
      on_visit; ///< empty: nobody is answered
  std::function<void(host_index mine, const std::string& name)>
      on_left; ///< it said that it leaves for good
  std::function<void(host_index mine, const std::string& text)>
      on_list; ///< there is a newer revocation list
  /// `fatal`: it makes no sense to try again as we are.
  std::function<void(host_index mine, const std::string& where, refusal why,
                     const std::string& text, bool fatal)>
      on_refused;
};

struct host_options {
  std::string name;
  std::uint32_t incarnation = 0;
  std::optional<address> listen; ///< none: it only dials
  std::string advertise;         ///< host:port that others dial; empty: that which it listens on
  /// The line, in bits per second: bulk is sent a little slower, in turns to all who are to get
  /// some, so that no queue forms in which what is small would wait, and no receiver gets much less
  /// than another. 0: as fast as it goes.
  double uplink = 0;
  std::uint64_t relay_bytes = 0; ///< so much it passes on between hosts that cannot dial each other
};

/// Sums since the beginning.
struct wire_counts {
  std::uint64_t links_open = 0; ///< hosts that there is a link with, now
  std::uint64_t links_made = 0, links_lost = 0;
  std::uint64_t frames_in = 0, frames_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t relayed_bytes = 0; ///< passed on for others
  std::uint64_t messages_lost = 0; ///< given up with their link, or nobody was there
  std::map<std::string, std::uint64_t>
      connections_refused; ///< by reason, those that did not occur too: the gate's, and refusals of
                           ///< links
  std::map<std::string, std::uint64_t> frames_refused; ///< the same, of what linked hosts sent
  std::uint64_t held_back = 0;       ///< how often a link had sent most_frames within a second
  std::uint64_t unhandled_bytes = 0; ///< that came in bulk
};

struct context;
class station;

class network final : public carrier {
public:
  explicit network(wire_options options);
  ~network() override;

  /// Before anything else. `net` was made with this as its carrier.
  void use(caf::actor_system& system, fabric& net);
  /// Nothing is sent or received any more; before `net` and its system go.
  void close();

  /// Where a host of this process is reached. Errors: those of listener::open.
  result<void> open(host_index host, host_options options);
  address listens_at(host_index host) const;
  /// What `host` introduces itself with from now on, to whom it has links with as well.
  void introduce(host_index host, const caf::actor& service);
  /// Makes a link to whoever is at `where`, again and again until there is one.
  void join(host_index host, const address& where);
  /// To all it has links with: it leaves for good. Returns when they have it, or after the
  /// detection time (at most 2 s).
  void leave(host_index host);

  std::vector<neighbour> neighbours(host_index host) const;
  wire_counts counts() const;

  void carry(netem::endpoint from, netem::endpoint to, caf::mailbox_element_ptr element,
             std::uint64_t bytes, bool bulk) override;
  void watch(host_index from, netem::endpoint of) override;
  void ended(netem::endpoint of) override;
  void killed(host_index host, kill_scope scope) override;

private:
  std::shared_ptr<station> station_of(host_index host) const;

  std::shared_ptr<context> shared_;
  mutable std::mutex mutex_; // guards stations_
  std::map<host_index, std::shared_ptr<station>> stations_;
};

} // namespace shoal::netem::wire
