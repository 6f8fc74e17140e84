// The guard of a Byzantine-tolerant round, beside its all-reduce: a plain state machine in the
// group actor of each member. It makes members answerable for their values, so that one that sends
// false values is found out and banned, and no honest member is. Source: Gorbunov et al., "Secure
// Distributed Training at Scale", arXiv:2106.11257, algorithms 4 to 7. Here rosters differ from
// round to round, members may be absent, and parts are uneven.
//
// Steps of member i in a group of n:
//   1. Commit: signs the hashes of its parts' chunks, its samples and a hidden secret, and sends
//      them to all. No value leaves before all live members have committed, or commit_time is over.
//      A member without a commitment then gives nothing. Its absence is no offence.
//   2. Echo: sends the hash of all commitments that it has. Members with different hashes exchange
//      the commitments. Two of one member are evidence.
//   3. Parts: sends each reducer the hashes of its chunks, then the chunks. A reducer takes no
//      chunk without its hash, and keeps the bytes of its part. It signs the root of its finished
//      part.
//   4. Reveal: once the result is certified, reveals its secret. All secrets make a random number
//      (actors/trust/beacon.hpp).
//   5. Check: signs its scalar product for each part (guard_products.hpp). The part's reducer
//      compares the product with the values that it has (V1). Each member adds the products of a
//      part, which make zero for a correct result (V2).
//   6. Audit: the random number draws validators and targets (actors/trust/audit_plan.hpp). A
//      validator's owner computes the target's contribution again. Its hashes must be those that
//      the target committed to. A contribution that is far from the rest has one more validator.
//      Members may disagree who that is, so this audit is no duty.
//   7. Case: a member that finds a lie accuses. Each juror computes the disputed values itself, and
//      signs which of the two has lied. More than half of the members make a verdict
//      (actors/trust/verdict.hpp).
//
// A member is banned only by its own two signatures, or by a verdict. Jurors compute from values
// whose hashes the members committed to. A juror that cannot get them does not vote. So a lost
// message, a cut or a crash costs nobody its place: it is a failed duty, which the owner counts.
//
// V2 and its case. Signed products may be false, and their reducer may be gone before it can say
// so. So jurors never convict a reducer by the sums alone: they get the part's contributions, check
// the hashes, and compute products and result again. The result is wrong if the products do not
// make zero, and the aggregator makes another result.
//
// Members that only reduce, or have weight 0, commit to a secret and no parts. A member whose round
// failed reveals its secret and takes no part in the rest.
//
// Different random numbers. A secret that comes too late is left out. Its own member then leaves it
// out, too, once it sees that the others did. A member may still reveal its secret to some only.
// The two sides then audit by two plans, and cannot add up their products. So nobody fails a duty
// in the eyes of a member that has another number.
//
// Bytes on the wire per member, beside the all-reduce's: n (16 n + 180) for commitments, and
// n (16 n + 130) for checks. The hashes are 16 for each chunk, and the other messages about 300 n.
// A case costs each juror one part's bytes, or those of all contributions to it. Delays: one before
// the first value leaves. The owner has its result before the reveal. Computing: each value is
// hashed twice, and is in two scalar products.
#pragma once

#include "actors/averaging/audit_duty.hpp"
#include "actors/averaging/guard_messages.hpp"
#include "actors/averaging/guard_products.hpp"
#include "actors/averaging/part_layout.hpp"
#include "actors/averaging/part_reduction.hpp"
#include "actors/averaging/round.hpp"
#include "actors/observe.hpp"
#include "actors/trust/audit_plan.hpp"
#include "actors/trust/beacon.hpp"
#include "actors/trust/verdict.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace shoal::actors {

/// The effects of a guard that round_io lacks. The group actor implements them.
class guard_io {
public:
  virtual ~guard_io() = default;
  /// The guard's tick() is called after this time.
  virtual void wake_in(duration time) = 0;
  /// Values may leave. `without`: members that have not committed.
  virtual void values_may_leave(const std::vector<std::uint32_t>& without) = 0;
  /// The member takes no part in the rest of this round.
  virtual void leave_out(std::uint32_t member, const char* why) = 0;
  /// The round has ended badly for the member, or the member is gone.
  virtual bool is_lost(std::uint32_t member) const = 0;
  virtual void convict(const evidence& proof, std::uint32_t culprit) = 0;
  virtual void convict(const verdict& proof, std::uint32_t culprit) = 0;
  /// Asks the owner for a contribution; recomputed() gets it.
  virtual void recompute(recomputation what) = 0;
  /// The member has not done what it owes. The text outlives the round.
  virtual void note_failure(std::uint32_t member, std::string_view what) = 0;
  virtual void observe(const observation& what) = 0;
};

class round_guard {
public:
  /// `contribution`: the values that the member sends; `secret`: random bits that nobody knows.
  /// Requires: config.guard. The codec drops no values.
  round_guard(const averaging_config& config, const round_request& request, group_begun group,
              std::uint32_t self, payload contribution, const key256& secret, round_io& io,
              guard_io& effects);
  round_guard(const round_guard&) = delete;
  round_guard& operator=(const round_guard&) = delete;

  // -- the all-reduce asks

  void start();
  bool values_may_leave() const noexcept { return open_; }
  bool has_committed(std::uint32_t member) const { return members_[member].commitment.has_value(); }
  enum class fit { right, unknown, wrong };
  /// Whether these bytes are the chunk that the member committed to. `unknown`: it has not
  /// committed, or has not sent the hashes.
  fit fits(std::uint32_t member, std::uint32_t part, std::uint32_t chunk,
           const payload& wire) const;
  /// The reduction has taken the chunk.
  void keep(std::uint32_t member, std::uint32_t part, std::uint32_t chunk, payload wire);
  /// The hashes of our chunks, which `to` needs before them.
  void send_hashes(std::uint32_t part, std::uint32_t to);
  /// We have reduced this part, with these chunk versions.
  void seal(std::uint32_t part, std::span<const id128> versions);
  /// The member has voted for another result than ours.
  void disagrees(std::uint32_t member);
  /// The round is over. `reducers`: by part, the member that all chunks came from; the number of
  /// members if there was more than one.
  void ended(const round_result& result, std::vector<std::uint32_t> reducers);

  // -- messages and events

  void on(const round_commitment& message, const caf::strong_actor_ptr& sender);
  void on(const commitments_seen& message, const caf::strong_actor_ptr& sender);
  void on(const commitments_given& message, const caf::strong_actor_ptr& sender);
  void on(const chunk_hashes& message, const caf::strong_actor_ptr& sender);
  void on(const part_sealed& message, const caf::strong_actor_ptr& sender);
  void on(const secret_revealed& message, const caf::strong_actor_ptr& sender);
  void on(const part_checks& message, const caf::strong_actor_ptr& sender);
  void on(const audit_passed& message, const caf::strong_actor_ptr& sender);
  void on(const accusation& message, const caf::strong_actor_ptr& sender);
  void on(const opening_wanted& message, const caf::strong_actor_ptr& sender);
  void on(const opening& message, const caf::strong_actor_ptr& sender);
  void on(const juror_vote& message, const caf::strong_actor_ptr& sender);
  void recomputed(const audit_done& answer);
  void on_down(const caf::actor_addr& whom);
  void tick();

  /// Nobody needs anything from us any more.
  bool idle() const noexcept { return over_; }
  const group_id& group() const noexcept { return group_.group; }

private:
  struct member_state {
    bool gone = false;
    bool stayed = false; // the member went when its own duties could be over
    std::optional<round_commitment> commitment{};
    std::optional<id128> content{};                       // the commitment's
    std::optional<id128> seen{};                          // the member's echo
    bool given = false;                                   // we gave it our commitments
    bool sealed_given = false;                            // and the seals
    std::map<std::uint32_t, std::vector<id128>> hashes{}; // by part, of its chunks
    bool contributes = false;                             // the result has its values
    std::optional<part_checks> checks{};
    std::vector<part_checks> early_checks{}; // from before the random number
    std::optional<key256> secret{};          // revealed, perhaps too late for the number
    bool has_checked = false;                // the member sent checks, perhaps for another number
    bool condemned = false;
  };
  /// The bytes of one member's values of a part; empty payloads have not arrived.
  using wires = std::vector<payload>;
  struct audit_state {
    audit what;
    bool done = false;
    bool owed = true; // the validator misses a duty if it does not report
  };
  enum class finding { right, wrong };
  struct case_state {
    std::optional<accusation> charge; // nothing: a vote came before it
    duration since{};
    bool begun = false;
    bool voted = false;
    bool over = false;
    std::vector<juror_vote> early; // before it began
    std::map<std::uint32_t, signature> for_accuser, for_accused;
    std::vector<opening_wanted> wanted; // before the charge
  };
  struct planned_accusation {
    case_kind kind{};
    std::uint32_t accused = 0, part = 0;
    duration due{};
  };
  using place = std::pair<std::uint32_t, std::uint32_t>; // (part, member)
  using request_name =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>; // (giver, member, part)

  // guard.cpp: commitments and values.
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  bool from_member(std::uint32_t member, const caf::strong_actor_ptr& sender) const;
  bool listen_to(std::uint32_t member, const caf::strong_actor_ptr& sender, const char* what);
  /// True if some member of the group sent the message.
  bool by_some_member(const caf::strong_actor_ptr& sender, const char* what);
  bool apart(std::uint32_t member) const;
  bool is_signed(std::uint32_t member, const digest& statement, const signature& by) const;
  void tell(std::uint32_t member, caf::message content);
  template <class Message>
  void tell_all(const Message& message) {
    for (std::uint32_t m = 0; m < size(); ++m)
      if (m != self_) tell(m, caf::make_message(message));
  }
  void commit();
  const char* fault_of(const round_commitment& what) const;
  bool take(const round_commitment& what);
  bool waits_for_commitments() const;
  void open_if_ready(bool time_is_up);
  id128 own_echo() const;
  void compare_echo(std::uint32_t member);
  void prove(statement_kind kind, std::uint32_t culprit, const id128& subject, const id128& first,
             const signature& first_by, const id128& second, const signature& second_by);
  payload own_wire(std::uint32_t part, std::uint32_t chunk) const;
  bool size_only() const { return contribution_.is_size_only(); }

  // guard_checks.cpp: the random number, products and audits.
  void reveal();
  bool beacon_complete() const;
  digest number_without_own() const;
  void choose_number();
  bool is_absent(std::uint32_t member) const;
  void settle_random();
  bool settled() const noexcept { return random_.has_value(); }
  void send_checks();
  part_products make_products(std::uint32_t part) const;
  payload decoded(std::uint32_t part, std::uint32_t chunk, const payload& wire) const;
  void take_checks(const part_checks& what);
  void verify_products(std::uint32_t member);
  bool has_all(const wires& chunks, std::uint32_t part, std::uint32_t member) const;
  part_product said(std::uint32_t member, std::uint32_t part) const;
  /// The products that the part's senders signed; nothing if some have not.
  std::optional<std::map<std::uint32_t, part_product>> all_said(std::uint32_t part) const;
  enum class sum { right, wrong };
  sum sum_of(std::uint32_t part, const std::map<std::uint32_t, part_product>& each) const;
  bool is_far(const std::map<std::uint32_t, part_product>& each) const;
  bool all_have_checked() const;
  double distance_of(std::uint32_t member) const;
  void verify_sums();
  void accuse_in_turn();
  std::vector<bool> may_validate() const;
  void plan();
  void watch_farthest();
  void want(std::uint32_t target);
  std::optional<finding> compare(std::uint32_t target, const payload& values) const;
  void note_audit(std::uint32_t validator, std::uint32_t target);
  void end_duties();

  // guard_cases.cpp: accusations and juries.
  void accuse(case_kind kind, std::uint32_t accused, std::uint32_t part);
  void charge(const accusation& what);
  case_state* case_named(const id128& id);
  void begin_cases();
  void begin(const id128& id, case_state& one);
  const wires* opened(std::uint32_t of, std::uint32_t part) const;
  void ask_for(const id128& id, std::uint32_t whom, std::uint32_t of, std::uint32_t part);
  void give(const opening_wanted& what, const case_state& about);
  std::vector<std::uint32_t> jurors_of(const id128& id, const case_state& one) const;
  void judge(const id128& id, case_state& one);
  void judge_gradient(const id128& id, case_state& one);
  void judge_product(const id128& id, case_state& one);
  void judge_part(const id128& id, case_state& one);
  bool is_aggregate(std::uint32_t part, const std::map<std::uint32_t, wires>& values) const;
  part_product product_of(const part_products& by, std::uint32_t member, std::uint32_t part,
                          const wires& values) const;
  digest statement_against(std::uint32_t culprit, const id128& id, std::uint8_t kind) const;
  void vote(const id128& id, case_state& one, std::uint32_t culprit);
  void take_vote(const id128& id, case_state& one, const juror_vote& what);
  void conclude(const id128& id, case_state& one);
  void end_cases();
  void end_if_done();

  const averaging_config& config_;
  const round_request& request_;
  const group_begun group_;
  const std::uint32_t self_;
  const payload contribution_;
  const key256 secret_;
  round_io& io_;
  guard_io& effects_;
  const part_layout layout_;
  std::vector<member_state> members_;
  beacon beacon_;
  bool falsified_ = false; // our values, in a run without values
  duration started_{};
  bool open_ = false;
  bool over_ = false;
  std::vector<std::vector<id128>> own_hashes_;              // by part
  std::map<place, wires> kept_;                             // by our senders
  std::map<std::uint32_t, std::vector<part_sealed>> seals_; // by part, of each reducer
  // After the round:
  std::optional<duration> ended_, settled_at_;
  bool failed_ = false;
  payload result_;
  std::vector<std::vector<std::vector<std::uint32_t>>> senders_; // by part and chunk
  std::vector<std::uint32_t> reducers_;
  std::optional<digest> random_;
  id128 random_id_;
  std::map<std::uint32_t, part_products> products_;
  std::set<std::uint32_t> summed_; // parts whose sums are done
  std::vector<planned_accusation> to_accuse_;
  std::vector<audit_state> audits_;
  bool watched_ = false; // the farthest contribution has its validator
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported_; // audits, by (validator, target)
  std::map<std::uint32_t, std::optional<finding>> recomputed_; // by target; nothing: under way
  bool duties_over_ = false;
  std::map<id128, case_state> cases_;
  std::map<place, wires> opened_;          // checked against their commitments
  std::map<request_name, wires> arriving_; // by the member that sends them
  std::set<request_name> asked_, given_;
};

} // namespace shoal::actors
