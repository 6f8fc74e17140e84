// One host of this process on the real network: the listener, the pipes of its links, and their
// callbacks. host_state.hpp makes the decisions under the lock, and the local host carries them
// out.
#pragma once

#include "netem/wire/allowance.hpp"
#include "netem/wire/context.hpp"
#include "netem/wire/control_requests.hpp"
#include "netem/wire/guarded.hpp"
#include "netem/wire/handshake.hpp"
#include "netem/wire/host_state.hpp"
#include "netem/wire/link_frames.hpp"
#include "netem/wire/listener.hpp"
#include "netem/wire/network.hpp"
#include "netem/wire/revocation.hpp"
#include "netem/wire/striped_pipe.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::netem::wire {

/// Thread safety: all.
class local_host : public std::enable_shared_from_this<local_host> {
public:
  local_host(std::shared_ptr<context> all, host_index host, host_options options);

  /// Errors: as listener::open.
  result<void> open();
  address listens_at() const { return listener_ ? listener_->at() : address{}; }
  void close();
  /// Simulates a pulled cable: the local host drops all frames in both directions, and tells
  /// nobody.
  void fall_silent() { silent_ = true; }

  void introduce(const caf::actor& service);
  void join(const address& where);
  void leave();
  /// Whether a callback of a control request runs.
  bool answers_requests() const { return requests_.use_count() > 1; }
  bool has_links() const { return !state_.lock()->links.all().empty(); }
  std::vector<connected_peer> connected_peers() const {
    return state_.lock()->hosts.connected_peers(now());
  }
  /// Adds the gate's counts. Takes no lock, since observers call it while they hold their own lock.
  void add_counts(network_counts& into) const;

  void carry(endpoint from, endpoint to, caf::mailbox_element_ptr element, std::uint64_t bytes,
             bool bulk);
  void watch(endpoint of);
  void actor_ended(std::uint32_t ordinal) { state_.lock()->actor_ended(ordinal, now()); }

private:
  using link_ptr = std::shared_ptr<host_link>;

  duration now() const { return all_->now(); }
  std::int64_t utc() const { return all_->options.utc_ns(); }
  std::shared_ptr<pipe> dial(const std::string& where, int which) const;

  // -- the lock (local_host.cpp) ----

  /// Calls `change` under the lock, and then does the deferred work without it.
  template <class Change>
  void apply(Change change) {
    deferred later;
    change(*state_.lock(), later);
    perform(later);
  }
  /// Requires: the caller does not hold the lock.
  void perform(const deferred& work);
  void schedule_tick();
  void tick_at(duration when);
  void tick();

  // -- links come and go (local_host_links.cpp) ----

  void start(const link_ptr& of, int which);
  /// Another process has dialled this host.
  void incoming(std::shared_ptr<pipe> made);
  void pipe_came(std::shared_ptr<pipe> made);
  void hello_came(const link_ptr& of, int which, const payload& bytes);
  /// A hello came on a link that this host dialled. Both pipes bring a hello; the first one counts.
  void greeted(const link_ptr& of, int which, hello theirs);
  /// Checks the certificate that a pipe of the link shows, and records its owner in the link.
  verdict certify(host_link& of, const pipe& through) const;
  /// Accepts or refuses a link by its hello.
  void decide(const link_ptr& of);
  caf::node_id node_of(const host_link& of) const;
  verdict check(const host_link& of);
  void connect(const link_ptr& of);
  /// Tells the other side why, and closes the link.
  void refuse(const link_ptr& of, refusal why, const std::string& text);
  void pipe_closed(const link_ptr& given, int which, const std::string& why);
  /// The other side said goodbye, and no more frames come.
  void left(const link_ptr& of);
  /// Closes a link, or handles the news that the link is closed.
  void end(const link_ptr& given, const std::string& why);
  /// Reports why a link that this host dialled never came up.
  void tell_failed(const host_link& of, const std::string& why, bool cannot_join);
  /// Reports a refusal, with all text from others made safe to print. Reports at most a hundred in
  /// a minute, and counts the others.
  void tell_refused(const std::string& where, refusal why, const std::string& text, bool fatal);
  /// Calls `work`. An exception would end the pipe without a report, so it is
  /// counted and ends the link.
  template <class Work>
  void safely(const link_ptr& of, Work work);
  /// Ends the links with members that options.banned() has banned.
  void end_banned();
  /// The host's process has ended permanently.
  void remove_host(host_index host);
  /// The other side broke the protocol. Counts this as `why`, and bans the other side's name for a
  /// while.
  void misbehaved(const link_ptr& of, const char* why);
  /// Bytes came that are not frames.
  void malformed(const link_ptr& given);

  // -- revocation lists (local_host_revocation.cpp) ----

  void end_if_revoked(const link_ptr& of);
  /// Ends this process if the moderator's list has its certificate.
  void end_if_own_is_revoked();
  void send_revocation_list(const link_ptr& to);
  /// There is a newer list, from the host at `from` or, if null, from this machine. Checks open
  /// links against it, and sends it to all other hosts.
  void revocation_list_changed(const link_ptr& from, const std::string& text);
  void revocation_list_came(const link_ptr& of, const std::string& pem);

  // -- frames (local_host_frames.cpp) ----

  void frame_came(const link_ptr& given, int which, const payload& bytes);
  void refused_came(const link_ptr& of, int which, const payload& bytes);
  void bound_rate(host_link& of, int which);
  /// Returns false if no correct host sends such a frame.
  bool handle(const link_ptr& of, int which, frame_kind kind, const payload& bytes);
  bool message_part_came(const link_ptr& of, int which, frame_kind kind, const payload& bytes);
  void message_came(const link_ptr& of, int which, const message_head& head, const payload& body,
                    std::size_t charged);
  bool relayed_came(const link_ptr& of, int which, const payload& bytes);
  bool on(const link_ptr& of, int which, const ping_frame& what);
  bool on(const link_ptr& of, int which, const pong_frame& what);
  bool on(const link_ptr& of, int which, const late_hello& what);
  bool on(const link_ptr& of, int which, const late_refusal& what);
  bool on(const link_ptr& of, int which, const watch_frame& what);
  bool on(const link_ptr& of, int which, const ended_frame& what);
  bool on(const link_ptr& of, int which, const where_is_frame& what);
  bool on(const link_ptr& of, int which, const node_at_frame& what);
  bool on(const link_ptr& of, int which, const introduce_frame& what);
  bool on(const link_ptr& of, int which, const leaving_frame& what);
  bool on(const link_ptr& of, int which, const relay_end_frame& what);
  bool on(const link_ptr& of, int which, const revocation_list_number_frame& what);
  bool on(const link_ptr& of, int which, const revocation_list_frame& what);

  const std::shared_ptr<context> all_;
  const host_index host_;
  host_options options_;
  const duration tick_;
  const handshake_rules rules_;
  revocation revoked_;
  const std::shared_ptr<control_requests> requests_;
  std::shared_ptr<stripe_sets> stripes_; ///< set while the host listens
  std::unique_ptr<listener> listener_;
  guarded<allowance> told_{100, std::chrono::minutes(1)};
  std::atomic<duration> bans_checked_{duration{}};
  std::atomic<bool> silent_{false};
  guarded<host_state> state_;
};

} // namespace shoal::netem::wire
