// The state behind a local host's lock: the links of one host, the hosts that it knows, and its
// plans to reach them. It is a plain state machine. It calls pipes only, and returns the work that
// needs the lock to be free.
#pragma once

#include "kernels/base/rng.hpp"
#include "netem/carrier.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/dialler.hpp"
#include "netem/wire/fault_record.hpp"
#include "netem/wire/handshake.hpp"
#include "netem/wire/link_frames.hpp"
#include "netem/wire/link_list.hpp"
#include "netem/wire/pacer.hpp"
#include "netem/wire/relays.hpp"
#include "netem/wire/remote_hosts.hpp"

#include <caf/actor.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::netem::wire {

/// The description of a host that others see.
struct own_host {
  node_key node;
  std::string name;
  std::uint32_t incarnation = 0;
  std::string address; ///< the address that others dial; empty: none
  bool listens = false;
  double uplink = 0;             ///< see pacer.hpp
  std::uint64_t relay_bytes = 0; ///< see relays.hpp
};

/// Work to do after the lock is released. The thread that holds the lock collects it.
struct deferred {
  struct greeting {
    std::shared_ptr<host_link> with; ///< dialled just now; its pipes must be started
    frame hello;                     ///< must be sent on both pipes
  };
  std::vector<greeting> greet;
  std::shared_ptr<host_link> overfull; ///< too many bytes wait for it; it must be closed
  std::optional<duration> pump_at;     ///< the time to call pump_turn()
  std::optional<duration> tick_at;     ///< the time of a tick() beside the regular ones
};

class host_state {
public:
  using link_ptr = std::shared_ptr<host_link>;

  struct surroundings {
    std::function<node_key(host_index)> node_of;
    std::function<std::shared_ptr<pipe>(const std::string& where, int which)> open_pipe;
    std::function<duration()> now; ///< the clock, for relayed pipes, which may send at any time
    std::uint64_t seed = 0;        ///< for the links' tokens
  };
  host_state(context& all, own_host own, surroundings around);

  // -- the host itself ----

  void set_own_address(const std::string& address) { own_.address = address; }
  /// Sends the actor that introduces this host to all linked hosts.
  void introduce(std::uint64_t service, duration now);
  /// Says goodbye on all links and sends nothing more. Returns the pipes to finish.
  std::vector<std::shared_ptr<pipe>> leave(duration now);
  /// Drops all links and hosts. Returns the pipes to close.
  std::vector<std::shared_ptr<pipe>> close();
  bool is_open() const noexcept { return !closed_ && !leaving_; }
  bool is_closed() const noexcept { return closed_; }

  // -- sending (host_state.cpp) ----

  /// Sends over the link. If there is none, dials and queues the frames.
  void send(host_index to, std::vector<frame> frames, bool bulk, duration now, deferred& later);
  void watch(endpoint of, duration now, deferred& later);
  void actor_ended(std::uint32_t ordinal, duration now);
  void pump(duration now, deferred& later);
  void pump_turn(duration now, deferred& later);
  /// Answers where a host is, if this host knows the address or can relay.
  void answer_where(host_link& to, const node_key& node, duration now);
  /// A linked host has told the address of another host.
  void learn_where(const host_link& from, const node_at_frame& told, duration now, deferred& later);

  // -- links come and go (host_state_links.cpp) ----

  struct frame_target {
    link_ptr link; ///< the link after its two pipes were joined
    frame_step step;
  };
  frame_target frame_came(const link_ptr& of, int which, frame_kind kind, std::size_t bytes,
                          duration now);
  /// A hello came on a link that this host dialled. Returns false if the link is not needed any
  /// more.
  bool take_hello(host_link& of, hello theirs);
  /// Refuses a hello whose sender is banned, or whose name belongs to another living process.
  /// `identity`: the key of the sender's certificate; empty without keys.
  verdict check_name(const hello& theirs, const std::string& identity, duration now) const;

  struct refused_link {
    std::vector<std::shared_ptr<pipe>> pipes;
    std::string name; ///< the name in its hello; may be empty
  };
  /// Returns nothing if this host has refused the link before.
  std::optional<refused_link> refuse(host_link& of, duration now);

  struct connected {
    bool done = false;                   ///< false: the link or the host was closed meanwhile
    std::optional<connected_peer> first; ///< set if there was no link with that host before
    std::vector<link_ptr> replaced;      ///< older links, to be closed
    std::vector<host_index> dead;        ///< earlier incarnations of the host
  };
  /// Marks the link to `host` as up. `revocation_list_number`: the number of the revocation list,
  /// if there are keys.
  connected connect(const link_ptr& of, host_index host, const caf::node_id& id, caf::actor service,
                    std::optional<std::uint64_t> revocation_list_number, duration now);
  /// The host sent a new introduction.
  std::optional<connected_peer> introduced(const host_link& of, caf::actor service, duration now);

  enum class pipe_end { wait, left, lost };
  /// A pipe has closed. `wait`: the other pipe may still bring the reason.
  std::pair<link_ptr, pipe_end> pipe_closed(const link_ptr& given, int which);
  /// The other side said goodbye on a pipe. Returns true if no more frames can come.
  bool goodbye_came(host_link& of, int which);

  struct removed {
    link_ptr link;                      ///< null: the link was closed before
    std::optional<connected_peer> lost; ///< the host, if it cannot be reached any more
    std::vector<link_ptr> orphans;      ///< links that went over this one
    std::vector<std::shared_ptr<pipe>> pipes;
    bool cannot_join = false;          ///< see join_list::lost()
    std::optional<duration> tick_at{}; ///< as in `deferred`
  };
  /// Closes a link. `nothing_listens`: it was dialled, and no process listens at the address.
  removed remove(const link_ptr& given, duration now, bool nothing_listens = false);
  /// The host is gone permanently.
  void forget(host_index host);

  // -- time ----

  struct due_work {
    std::vector<std::pair<link_ptr, const char*>> to_close; ///< links to close, and the reasons
    /// hosts, and the number of lost messages
    std::vector<std::pair<host_index, std::size_t>> given_up;
    std::vector<host_index> hosts;  ///< hosts to dial
    std::vector<std::size_t> joins; ///< entries of `joins` to dial
  };
  due_work tick(duration now);
  void dial_due(const due_work& work, duration now, deferred& later);

  // -- relays (host_state_relay.cpp) ----

  struct relayed_target {
    link_ptr link;      ///< takes the frame; null: no link does
    bool fresh = false; ///< the link is new, and its pipes must be started
  };
  /// A relayed frame came: this host passes it on, or it belongs to one of its own links.
  relayed_target relayed_came(const link_ptr& of, const relayed_head& head, const payload& inner,
                              duration now, deferred& later);
  /// The relay, or one of the two ends, says that a link has ended. Returns this host's link, or
  /// null if the link belongs to other hosts.
  link_ptr relay_ended(const link_ptr& of, int which, const relay_end_frame& what, duration now);

  link_list links;
  remote_hosts hosts;
  join_list joins;
  fault_record faults;

private:
  hello own_hello(std::uint64_t token) const;
  const own_keys& keys() const noexcept { return all_.options.keys; }
  /// Whether one more link with `other` may begin over that relay.
  bool may_begin(const link_ptr& relay, const node_key& other, duration now);
  /// Asks all linked hosts for the address of a host.
  void ask_where(remote& r, duration now, deferred& later);
  /// Uses this link for frames to that host. Null: the host has no link.
  void use(remote& r, link_ptr through);
  /// Sends a frame of this host, or queues it behind the pacer.
  void put_own(host_link& to, bool bulk, frame what, duration now);
  void send_waiting(remote& to, host_link& over, duration now);
  /// Starts or continues the attempts to reach a host. Requires: there is no link to it.
  void reach(remote& r, duration now, deferred& later);
  void dial(const std::string& where, link_ptr& slot, duration now, deferred& later);
  void dial_over(const link_ptr& relay, remote& to, duration now, deferred& later);
  void dialled(const link_ptr& made, link_ptr& slot, duration now, deferred& later);
  bool is_stopped(duration now);
  /// Tells the hosts that had links with `node` over this host that `node` is gone.
  void relay_lost(const node_key& node, duration now);

  context& all_;
  own_host own_;
  const surroundings around_;
  rng tokens_;
  pacer pace_;
  relays passing_;
  bool closed_ = false, leaving_ = false;
  std::uint64_t service_ = 0;
  duration last_tick_{};
};

} // namespace shoal::netem::wire
