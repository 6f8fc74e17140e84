// All conducts of this program: one line each.
#include "actors/conduct/conducts.hpp"

#include "actors/conduct/attacks.hpp"
#include "actors/conduct/attacks_on_data.hpp"
#include "actors/conduct/attacks_on_experts.hpp"
#include "actors/conduct/attacks_on_guard.hpp"
#include "actors/conduct/attacks_on_values.hpp"
#include "actors/conduct/bugs_in_averaging.hpp"
#include "actors/conduct/bugs_in_records.hpp"
#include "actors/conduct/bugs_in_training.hpp"
#include "kernels/base/check.hpp"

namespace shoal::actors {

namespace {

conduct_definition honest() {
  conduct_definition out{"honest", "it does what the protocols say"};
  out.make = [](host&, const conduct_options&) { return honest_conduct(); };
  return out;
}

template <class Conduct>
conduct_definition bug(const char* name, const char* meaning) {
  conduct_definition out{name, meaning, conduct_kind::bug};
  out.make = [](host&, const conduct_options&) { return std::make_shared<Conduct>(); };
  return out;
}

template <class Conduct>
conduct_definition attack_of(const char* name, const char* meaning, bool for_chaos = true) {
  conduct_definition out{name, meaning, conduct_kind::attack, for_chaos};
  out.make = [](host& on, const conduct_options& how) {
    return std::make_shared<Conduct>(on, how);
  };
  return out;
}
template <class Conduct>
conduct_definition on_values(const char* name, const char* meaning) {
  auto out = attack_of<Conduct>(name, meaning, false);
  out.changes_values = true;
  return out;
}
template <class Conduct>
conduct_definition of_shard(const char* name, const char* meaning) {
  auto out = attack_of<Conduct>(name, meaning, false);
  out.of_shards = true;
  return out;
}
template <class Conduct>
conduct_definition on_labels(const char* name, const char* meaning) {
  auto out = on_values<Conduct>(name, meaning);
  out.changes_labels = true;
  return out;
}

} // namespace

definition_list<conduct_definition>& conducts() {
  static definition_list<conduct_definition> list{
      honest(),
      bug<wrong_denominator>(
          "wrong_denominator",
          "a reducer divides by the weight of the whole group, missing members included"),
      bug<lost_sample>("lost_sample", "a trainer forgets the last sample that it computed"),
      bug<unordered_peers>("unordered_peers",
                           "a member serves the others in the order of their places in memory"),
      bug<equal_weights>("equal_weights", "a reducer gives every contribution the same weight"),
      bug<divide_by_peers>("divide_by_peers",
                           "a reducer divides by the number of senders instead of their samples"),
      bug<throwing_gradient>("throwing_gradient",
                             "from the second epoch on, computing a gradient throws"),
      bug<lone_vote>("lone_vote", "a member takes its own vote for a majority"),
      bug<throwing_step>("throwing_step", "from the second epoch on, the optimizer step throws"),
      bug<forgotten_commit>("forgotten_commit",
                            "backups of the data shard do not note that a sample is committed"),
      bug<reused_round>(
          "reused_round",
          "a trainer contributes a gradient that a round has averaged to the next one, too"),
      bug<stale_state>("stale_state",
                       "a trainer that is a few epochs behind goes on from its old state"),
      bug<split_branch>(
          "split_branch",
          "a trainer on another branch of the same epoch stays on it, and is let into rounds"),
      bug<leaked_group>("leaked_group", "group actors do not end with their rounds"),
      bug<wall_clock>("wall_clock", "how long a leader waits depends on the time of day"),
      bug<expired_record>("expired_record",
                          "nodes of the DHT give expired records until somebody clears them away"),
      attack_of<mutated_messages>("mutated_messages", "`strength` fields of a message are changed"),
      attack_of<dropped_messages>("dropped_messages", "messages are not sent"),
      attack_of<repeated_messages>("repeated_messages", "a message is sent `strength` times more"),
      attack_of<replayed_messages>("replayed_messages",
                                   "an earlier message to another host is sent instead"),
      attack_of<borrowed_identity>("borrowed_identity",
                                   "a message names another peer as its sender or subject"),
      attack_of<redirected_replies>("redirected_replies",
                                    "a request asks for the answer to be sent to another host"),
      attack_of<equivocation>("equivocation",
                              "values in a message differ from receiver to receiver by `strength`"),
      attack_of<two_votes>(
          "two_votes", "a member signs a second vote, for another result, in each round", false),
      attack_of<stalling_leader>("stalling_leader",
                                 "a leader names the earliest deadline, and begins no group"),
      attack_of<huge_values>("huge_values", "a contribution is multiplied by 10^30 `strength`"),
      on_values<flipped_signs>("flipped_signs", "a contribution is multiplied by minus `strength`"),
      on_values<random_direction>(
          "random_direction",
          "a contribution is a common random direction, `strength` times as long"),
      on_labels<flipped_labels>(
          "flipped_labels", "gradients are computed of samples with wrong labels (y becomes the "
                            "last label minus y)"),
      on_values<delayed_gradients>("delayed_gradients",
                                   "a contribution is the one of `strength` epochs ago"),
      on_values<inner_product_manipulation>(
          "inner_product_manipulation",
          "a contribution is minus `strength` times the mean of those that the attackers know"),
      on_values<little_is_enough>(
          "little_is_enough",
          "a contribution is the mean that the attackers know, minus `strength` z "
          "deviations, where z is as large as a majority bears (ALIE)"),
      attack_of<false_means>("false_means", "a reducer adds `strength` to each value of its means",
                             false),
      attack_of<wrong_layers>("wrong_layers",
                              "a host that serves layers, a stage or experts multiplies each "
                              "output by 1 plus `strength` times a normal number",
                              false),
      attack_of<false_copies>("false_copies",
                              "a host of experts multiplies the values of the copies that it "
                              "sends by minus `strength`",
                              false),
      of_shard<poisoned_samples>("poisoned_samples",
                                 "a data shard sends the bytes of each sample backwards"),
      attack_of<equivocating_commitments>("equivocating_commitments",
                                          "half of the members get another commitment to a round",
                                          false),
      attack_of<wrong_products>("wrong_products",
                                "`strength` is added to the scalar products that the member signs",
                                false),
      attack_of<withheld_secret>("withheld_secret",
                                 "the member does not reveal its part of a random number", false),
      attack_of<withheld_openings>("withheld_openings",
                                   "the member gives no values that a case is about", false),
      attack_of<idle_validator>("idle_validator", "the member does not compute contributions again",
                                false),
      attack_of<colluding_validator>("colluding_validator",
                                     "the member finds every contribution right", false),
      attack_of<framing_validator>("framing_validator", "the member finds every contribution wrong",
                                   false),
      attack_of<false_accuser>("false_accuser", "the member accuses another of a wrong gradient",
                               false),
  };
  return list;
}

std::shared_ptr<conduct> make_conduct(std::string_view name, host& on) {
  conduct_options how;
  how.kind = name;
  return make_conduct(how, on);
}

bool is_attack(const conduct_options& how) {
  const auto* found = conducts().find(how.kind);
  return found != nullptr && found->kind == conduct_kind::attack;
}

std::shared_ptr<conduct> make_conduct(const conduct_options& how, host& on) {
  const auto* found = conducts().find(how.kind);
  SHOAL_CHECK(found != nullptr, "a conduct of this name");
  return found->make(on, how);
}

const std::shared_ptr<conduct>& honest_conduct() {
  static const auto honest = std::make_shared<conduct>();
  return honest;
}

} // namespace shoal::actors
