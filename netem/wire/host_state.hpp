// The state that a station's lock guards: the links of one host, the hosts that it knows, and plans
// to reach them. It is a plain state machine: it calls nobody but pipes, and hands back what is to
// be done without the lock.
#pragma once

#include "kernels/base/rng.hpp"
#include "netem/carrier.hpp"
#include "netem/wire/conduct.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/dialler.hpp"
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

/// The description that a host gives of itself, and its offers.
struct own_host {
  node_key node;
  std::string name;
  std::uint32_t incarnation = 0;
  std::string address; ///< where others dial; empty: nowhere
  bool listens = false;
  double uplink = 0;             ///< see pacer.hpp
  std::uint64_t relay_bytes = 0; ///< see relays.hpp
};

/// Work for after the lock. Whoever holds the lock collects it, and does it once the lock is free.
struct deferred {
  struct greeting {
    std::shared_ptr<host_link> with; ///< just dialled: its pipes are to be started
    frame hello;                     ///< and this sent on both
  };
  std::vector<greeting> greet;
  std::shared_ptr<host_link> overfull; ///< too much waits for it: it is to be ended
  std::optional<duration> pump_at;     ///< when pump_turn() is to be called
};

class host_state {
public:
  using link_ptr = std::shared_ptr<host_link>;

  struct surroundings {
    std::function<node_key(host_index)> node_of;
    std::function<std::shared_ptr<pipe>(const std::string& where, int which)> open_pipe;
    std::function<duration()> now; ///< for pipes over relays, which send at any time
    std::uint64_t seed = 0;        ///< of the links' tokens
  };
  host_state(context& all, own_host own, surroundings around);

  // -- the host itself ----

  void set_own_address(const std::string& address) { own_.address = address; }
  /// Tells all linked hosts.
  void introduce(std::uint64_t service, duration now);
  /// Says goodbye on all links; nothing is sent any more. The answer: the pipes to finish.
  std::vector<std::shared_ptr<pipe>> leave(duration now);
  /// Forgets everything. The answer: the pipes to close.
  std::vector<std::shared_ptr<pipe>> close();
  bool is_open() const noexcept { return !closed_ && !leaving_; }
  bool is_closed() const noexcept { return closed_; }

  // -- sending (host_state.cpp) ----

  /// Sends over the link, or dials and has the frames wait.
  void send(host_index to, std::vector<frame> frames, bool bulk, duration now, deferred& later);
  void watch(endpoint of, duration now, deferred& later);
  void actor_ended(std::uint32_t ordinal, duration now);
  void pump(duration now, deferred& later);
  void pump_turn(duration now, deferred& later);
  /// Tells one that asks where a host is, if this one knows or can relay.
  void answer_where(host_link& to, const node_key& node, duration now);
  /// A linked host knows where another is.
  void learn_where(const host_link& from, const node_at_frame& told, duration now, deferred& later);

  // -- links come and go (host_state_links.cpp) ----

  struct frame_target {
    link_ptr link; ///< the whole one
    frame_step step;
  };
  frame_target frame_came(const link_ptr& of, int which, frame_kind kind, std::size_t bytes,
                          duration now);
  /// A hello came on a link that this host dialled. False if it is not needed any more.
  bool take_hello(host_link& of, hello theirs);
  /// Whether the name in a hello is banned, or taken by another process.
  verdict check_name(const hello& theirs, duration now) const;

  struct refused_link {
    std::vector<std::shared_ptr<pipe>> pipes;
    std::string name; ///< as its hello says; may be empty
  };
  /// Nothing if it was refused before.
  std::optional<refused_link> refuse(host_link& of, duration now);

  struct connected {
    bool done = false;              ///< false: the link, or the host, was closed meanwhile
    std::optional<neighbour> first; ///< there was no link with that host before
    link_ptr replaced;              ///< an older link, to be ended
    std::vector<host_index> dead;   ///< earlier incarnations
  };
  /// The link is up, with `host`. `list_number`: of the revocation list, with keys.
  connected connect(const link_ptr& of, host_index host, const caf::node_id& id, caf::actor service,
                    std::optional<std::uint64_t> list_number, duration now);
  /// The host introduces itself anew.
  std::optional<neighbour> introduced(const host_link& of, caf::actor service, duration now);

  enum class pipe_end { wait, left, lost };
  /// A pipe is closed. `wait`: the other one may still say why.
  std::pair<link_ptr, pipe_end> pipe_over(const link_ptr& given, int which);
  /// The other side says goodbye on a pipe. True once nothing more can come.
  bool goodbye_came(host_link& of, int which);

  struct removed {
    link_ptr link;                 ///< null: it was closed before
    std::optional<neighbour> lost; ///< cannot be reached now
    std::vector<link_ptr> orphans; ///< links that went over it
    std::vector<std::shared_ptr<pipe>> pipes;
    bool name_taken_for_good = false;
  };
  removed remove(const link_ptr& given, duration now);
  /// The host is gone for good.
  void forget(host_index host);

  // -- time ----

  struct due_work {
    std::vector<std::pair<link_ptr, const char*>> over;       ///< links to end, and why
    std::vector<std::pair<host_index, std::size_t>> given_up; ///< hosts, and messages that are lost
    std::vector<host_index> hosts;                            ///< to dial
    std::vector<std::size_t> joins;                           ///< the same
  };
  due_work tick(duration now);
  void dial_due(const due_work& work, duration now, deferred& later);

  // -- relays (host_state_relay.cpp) ----

  struct relayed_target {
    link_ptr link;      ///< takes the frame; null: nobody
    bool fresh = false; ///< the link is new: its pipes are to be started
  };
  /// A relayed frame came: it is passed on, or belongs to a link of this host.
  relayed_target relayed_came(const link_ptr& of, const relayed_head& head, const payload& inner,
                              duration now, deferred& later);
  /// The relay, or one of the two ends, says that a link is over. The answer: the link of this
  /// host; null if it is of others.
  link_ptr relay_ended(const link_ptr& of, int which, const relay_end_frame& what, duration now);

  link_list links;
  remote_hosts hosts;
  join_list joins;
  conduct faults;

private:
  hello own_hello(std::uint64_t token) const;
  /// Frames to that host go over this link; null: there is none.
  void use(remote& r, link_ptr through);
  /// Sends a frame of this host's own, or has it wait for its turn.
  void put_own(host_link& to, bool bulk, frame what, duration now);
  void send_waiting(remote& to, host_link& over, duration now);
  /// Begins to reach it, or goes on. Requires: there is no link.
  void reach(remote& r, duration now, deferred& later);
  void dial(const std::string& where, link_ptr& slot, duration now, deferred& later);
  void dial_over(const link_ptr& relay, remote& to, duration now, deferred& later);
  void dialled(const link_ptr& made, link_ptr& slot, duration now, deferred& later);
  bool is_stopped(duration now);
  /// Tells those who had links with `node` over this host that it is gone.
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
