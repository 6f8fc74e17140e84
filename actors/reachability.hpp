// Finds out whether and how other hosts can reach this one. A host cannot know this by itself, so
// it asks other peers. A plain state machine: the peer feeds it messages and sends what it returns.
//
// Steps of one inquiry:
// 1. The asker queries up to `askers` peers. Each reports the address that it sees on the asker's
//   datagrams.
// 2. Each query names a third host, which dials the asker anew. The queried peer passes on that
//   host's answer. It does not dial itself: a router may let it in, because the asker has just sent
//   to it. The third host is another open peer; else any other peer. After a failed inquiry it is a
//   data shard, which the queried peer can surely reach.
// 3. When all have answered, or after `timeout`, the majority decides. Dialled back: open. Else no
//   datagrams seen: outbound_only. Else one address for all: cone. Else symmetric.
//
// An inquiry fails if nobody reports on the dialling, or if only one peer reports an address. The
// earlier verdict then stays, for up to `forget_after` failed inquiries. Inquiries are repeated,
// because lines, routers and neighbours change: soon while there is no verdict, else every `again`.
// Each queried peer's first answer counts, and an inquiry queries a member once, however many peers
// it shows. So a minority of false answers changes nothing, and one certificate is one answer.
//
// Left out: the only open peer of a swarm whose shards cannot be dialled gets no verdict, because
// its peers cannot reach a third host.
//
// Source: Rosenberg et al., RFC 3489 (STUN), section 10.1; AutoNAT of libp2p.
#pragma once

#include "actors/host.hpp"
#include "actors/host_messages.hpp"
#include "actors/reachability/messages.hpp"
#include "actors/reachability/reach.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

struct reachability_config {
  bool enabled = false; ///< false: every host counts as open, and no queries are sent
  std::uint32_t askers = 5;
  duration timeout =
      std::chrono::seconds(4); ///< an inquiry ends then; a dialling gets half of this time
  duration again = std::chrono::minutes(5);
  /// A peer takes part after this many inquiries, even without a verdict.
  std::uint32_t tries_before_start = 3;
  std::uint32_t forget_after = 3;
};

class reachability {
public:
  reachability(const reachability_config& config, rng draws);

  /// A peer that can be queried, and whether it says that it is open.
  struct other {
    caf::actor address;
    bool open = false;
    member_id member{}; ///< the member at the address
  };

  bool looking() const noexcept { return looking_; }
  /// True if the peer need not wait for a verdict any longer.
  bool settled() const noexcept {
    return !config_.enabled || known_ != reach::unknown || looks_ >= config_.tries_before_start;
  }
  reach known() const noexcept { return config_.enabled ? known_ : reach::open; }
  /// When the next inquiry is due. Requires: not looking().
  duration next_look() const noexcept { return next_look_; }

  /// Begins an inquiry and returns the queries to send; none if `others` is empty. The third host
  /// of each query is another member's peer, an open one if there is one. After a failed inquiry,
  /// one of `shards` replaces a third host that is not known to be open.
  std::vector<std::pair<caf::actor, address_query>>
  look(std::vector<other> others, const caf::actor& self,
       const std::vector<caf::actor>& shards = {});
  /// The queries without an answer, to be sent again. A queried peer may have had no connection to
  /// this host at first.
  std::vector<std::pair<caf::actor, address_query>> again() const;
  void on(const address_answer& message, const caf::strong_actor_ptr& sender);
  void on(const dial_answer& message, const caf::strong_actor_ptr& sender);
  /// True if all have answered: the inquiry may end before its time.
  bool complete() const;
  /// Counts the answers.
  std::uint64_t token() const noexcept { return token_; }
  /// Ends the inquiry. True if the verdict changed.
  bool conclude(duration now);

private:
  struct asked {
    caf::actor who, third;
    bool answered = false, tested = false;
    std::uint64_t seen = 0;
    bool opened = false;
  };
  asked* from(std::uint64_t token, const caf::strong_actor_ptr& sender);

  reachability_config config_;
  rng draws_;
  caf::actor self_;
  std::vector<asked> asked_;
  bool looking_ = false;
  std::uint64_t token_ = 0;
  std::uint32_t looks_ = 0, in_vain_ = 0;
  reach known_ = reach::unknown;
  duration next_look_{};
};

/// The other side of an inquiry: a queried peer, which asks a third host to dial, and a third host,
/// which dials. Remembers where each answer goes. Drops requests beyond `most_open`, as if the
/// network had lost them. A member has few places, so it cannot fill those of all others.
class dial_helper {
public:
  static constexpr std::size_t most_open = 256;
  /// An inquiry sends one query to a peer, and repeats it once.
  static constexpr std::size_t most_asked_by_member = 4;
  /// A queried peer passes on the queries of many askers, perhaps all to one third host.
  static constexpr std::size_t most_dials_for_member = 64;
  struct reply {
    caf::actor to;
    dial_answer what;
  };

  /// As queried peer: the request for the third host of the query, which answers within `timeout`
  /// or never. `asker` sent the query.
  std::optional<dial_request> asked(const address_query& query, const member_id& asker,
                                    const caf::actor& self, duration now, duration timeout);
  /// As queried peer: the third host's answer, for the asker. Empty if the message answers no
  /// request of asked().
  std::optional<reply> passed_on(const dial_answer& message, const caf::strong_actor_ptr& sender);
  /// As third host: the token under which to dial for `sender`.
  std::optional<std::uint64_t> third(const dial_request& request, const member_id& sender);
  /// As third host: makes `by` dial for at most `timeout`; `self` gets a `dialled`. False if the
  /// request lacks an address, or if the answer would go to another actor than `sender`.
  bool dial(const dial_request& request, const caf::strong_actor_ptr& sender, host& by,
            const caf::actor& self, duration timeout);
  std::optional<reply> done(const dialled& outcome);

private:
  // Larger than all tokens of inquiries, so that answers to the two cannot be mixed up.
  static constexpr std::uint64_t first_token = std::uint64_t{1} << 63;
  struct errand {
    caf::actor asker;
    std::uint64_t token = 0;
    caf::actor third;
    duration until{};
    member_id by; // the member that takes up the place
  };
  using errands = std::map<std::uint64_t, errand>;
  static bool has_place(const errands& in, const member_id& by, std::size_t most);
  std::uint64_t next_ = first_token;
  errands passing_, dialling_;
};

} // namespace shoal::actors
