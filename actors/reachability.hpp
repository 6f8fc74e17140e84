// How a peer learns whether, and how, others can reach it: nobody tells it, so it asks others. A
// plain state machine; the peer feeds it messages and does what it asks.
//
// Steps of one look: 1. ask up to `askers` other peers for the address that they see our datagrams
// come from, and name each a
//      third host: an asked one cannot test itself whether strangers get in, because we have just
//      sent to it. That is another open peer; else any other peer, and after a look in vain a data
//      shard, which the asked one can surely reach;
//   2. the asked one answers what it sees, and has the third one dial us anew, whose answer it
//   passes on;
//   3. when all have answered, or after `patience`, the majority of those who answered counts:
//      dialled back: open; else no datagrams seen: outbound_only; else one address for all: cone;
//      else symmetric.
// Without any verdict about the dialling, or with one address from one peer alone, nothing is
// learned, and what was learned before stays for `forget_after` such looks. Looks are repeated,
// soon while nothing is known, every `again` after that: lines, routers and neighbours change. One
// answer each from those asked counts, whatever it says: a minority that lies changes nothing, a
// majority is believed. Left out: the only open peer of a swarm whose shards cannot be dialled
// stays unknown, because nobody whom it asks can reach a third. Source: Rosenberg et al., RFC 3489
// (STUN), section 10.1; AutoNAT of libp2p.
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
  bool enabled = false; ///< false: everybody is open, and nobody asks
  std::uint32_t askers = 5;
  duration patience = std::chrono::seconds(4); ///< of one look; a dialling has half of it
  duration again = std::chrono::minutes(5);
  std::uint32_t tries_before_start =
      3; ///< looks until a peer without a verdict takes part all the same
  std::uint32_t forget_after = 3;
};

class reachability {
public:
  reachability(const reachability_config& config, rng draws);

  /// Whom one may ask: others, by how they say they can be reached.
  struct other {
    caf::actor address;
    bool open = false;
  };

  bool looking() const noexcept { return looking_; }
  /// Nothing is gained by waiting for a verdict.
  bool settled() const noexcept {
    return !config_.enabled || known_ != reach::unknown || looks_ >= config_.tries_before_start;
  }
  reach known() const noexcept { return config_.enabled ? known_ : reach::open; }
  /// When the next look is due. Requires: not looking().
  duration next_look() const noexcept { return next_look_; }

  /// Begins a look; whom to send what. Empty if there is nobody to ask. The third of each query is
  /// another peer, an open one if there is one; after a look in vain one of `shards` before one
  /// that is not known to be open.
  std::vector<std::pair<caf::actor, address_query>>
  look(std::vector<other> others, const caf::actor& self,
       const std::vector<caf::actor>& shards = {});
  /// The queries whose answers are missing, to be sent once more: whom we asked may have had no way
  /// to us yet.
  std::vector<std::pair<caf::actor, address_query>> again() const;
  void on(const address_answer& message, const caf::strong_actor_ptr& sender);
  void on(const dial_answer& message, const caf::strong_actor_ptr& sender);
  /// All have answered: the look may be ended before its time.
  bool complete() const;
  std::uint64_t token() const noexcept { return token_; }
  /// Ends the look. True if what is known changed.
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

/// The other side: who is asked has a third dial, and who is a third dials. Remembers whom to tell.
/// What is more than `most_open` at a time is dropped, as a lost message would be.
class dial_helper {
public:
  static constexpr std::size_t most_open = 256;
  struct reply {
    caf::actor to;
    dial_answer what;
  };

  /// Asked: the request for the query's third, answered within `patience` or never.
  std::optional<dial_request> asked(const address_query& query, const caf::actor& self,
                                    duration now, duration patience);
  /// Asked: what the third said, for the asker. Nothing if it is no answer to asked().
  std::optional<reply> passed_on(const dial_answer& message, const caf::strong_actor_ptr& sender);
  /// Third: the number under which to dial.
  std::optional<std::uint64_t> third(const dial_request& request);
  /// Third: has `by` dial, for at most `patience`; `self` gets a dialled. False: the request names
  /// nobody.
  bool dial(const dial_request& request, host& by, const caf::actor& self, duration patience);
  std::optional<reply> done(const dialled& outcome);

private:
  // Above all tokens of a look, so that an answer to one is not taken for the other.
  static constexpr std::uint64_t first_token = std::uint64_t{1} << 63;
  struct errand {
    caf::actor asker;
    std::uint64_t token = 0;
    caf::actor third;
    duration until{};
  };
  std::uint64_t next_ = first_token;
  std::map<std::uint64_t, errand> passing_, dialling_;
};

} // namespace shoal::actors
