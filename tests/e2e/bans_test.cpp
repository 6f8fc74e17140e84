// Evidence, bans and revocations, from the signed lie to the file of a node and the moderator.
#include "actors/averaging/certificate.hpp"
#include "actors/averaging/observations.hpp"
#include "actors/trust/identity.hpp"
#include "actors/trust/proof.hpp"
#include "netem/wire/credentials.hpp"
#include "netem/wire/key_files.hpp"
#include "scenarios/observe/case_book.hpp"
#include "scenarios/page/run_reader.hpp"
#include "scenarios/record/explain_case.hpp"
#include "scenarios/runner/admitted_keys.hpp"
#include "scenarios/runner/bans_file.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::e2e;
using namespace shoal::scenarios;
using netem::wire::credentials;

namespace {

const std::string swarm_hash(64, 'a');

actors::key256 key_of(const credentials& who) {
  const auto& key = who.key->public_key();
  return actors::key_from({reinterpret_cast<const char*>(key.data()), key.size()});
}

/// A proof of two votes, signed with the member's own key.
actors::proof_in_swarm two_votes_of(const credentials& who, const std::string& swarm = swarm_hash) {
  actors::evidence out;
  out.culprit = key_of(who);
  out.subject = {1, 2};
  out.first = {3, 4};
  out.second = {5, 6};
  const auto sign = [&](const actors::id128& content) {
    const auto text = actors::in_swarm(
        swarm, actors::statement_about(actors::statement_kind::vote, out.subject, content));
    const auto made = who.key->sign(std::as_bytes(std::span(text.bytes)));
    actors::signature by;
    std::memcpy(&by, made.data(), sizeof by);
    return by;
  };
  out.first_by = sign(out.first);
  out.second_by = sign(out.second);
  return {out, swarm};
}

/// A moderator with the members that it has admitted.
struct reef : scratch_folder {
  reef() { run({"init", path_of("reef")}); }
  std::string path_of(const std::string& name) const { return (*this / name).string(); }
  program_result keys(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "keys");
    return run_program(arguments);
  }
  void run(const std::vector<std::string>& arguments) const {
    const auto done = keys(arguments);
    REQUIRE_MESSAGE(done.exit == 0, done.err);
  }
  credentials admit(const std::string& name) const {
    run({"admit", name, "--moderator", path_of("reef"), "-o", path_of(name)});
    auto out = netem::wire::load_credentials(path_of(name));
    REQUIRE_MESSAGE(out.ok(), (out.ok() ? std::string{} : out.error()));
    return *std::move(out);
  }
  program_result revoke_by(const std::string& evidence) const {
    return keys({"revoke", "--moderator", path_of("reef"), "--evidence", evidence});
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a file of bans is read back, and a damaged or false line is skipped with its number") {
  const reef here;
  const auto mallory = here.admit("mallory"), eve = here.admit("eve");
  const auto file = here / "bans.txt";
  CHECK(load_bans(file)->all.empty());
  const banned_member one{two_votes_of(mallory), 1'795'000'000'000'000'000, "mallory"},
      other{two_votes_of(eve), 1'795'000'001'000'000'000, ""};
  REQUIRE(save_bans(file, {one, other}).ok());
  const auto read = load_bans(file);
  REQUIRE(read.ok());
  CHECK(read->skipped.empty());
  CHECK(read->all == std::vector{one, other});

  auto forged = one;
  std::get<actors::evidence>(forged.what.what).subject.low += 1;
  auto simulated = one;
  simulated.what.swarm.clear();
  const auto text = to_line(forged) + "\n" + to_line(one) + "\n\n" + to_line(other).substr(9) +
                    "\n" + to_line(simulated) + "\n";
  const auto damaged = bans_from(text);
  CHECK(damaged.all == std::vector{one});
  REQUIRE(damaged.skipped.size() == 3);
  CHECK(damaged.skipped[0] == "line 1 is skipped: its proof does not hold");
  CHECK(damaged.skipped[1] == "line 4 is skipped: a proof begins with its kind, one of verdict, "
                              "vote, group, part, commitment, checks");
  CHECK(damaged.skipped[2] == "line 5 is skipped: its proof does not hold");
  const auto line = to_line(one);
  for (std::size_t cut = 0; cut + 8 < line.size(); cut += 3)
    if (const auto part = banned_from_line(line.substr(0, cut))) CHECK(part->since_utc_ns == 0);
}

TEST_CASE("a key whose certificate is revoked is not admitted any more, and the others are") {
  const reef here;
  const auto judge = here.admit("judge"), mallory = here.admit("mallory"), eve = here.admit("eve");
  admitted_keys known(judge.admits);
  const auto now = netem::wire::utc_now();
  CHECK_FALSE(known.admits(key_of(mallory), {}, now));
  CHECK_FALSE(known.admits(key_of(mallory), eve.certificate, now));
  CHECK(known.admits(key_of(mallory), mallory.certificate, now));
  CHECK(known.admits(key_of(eve), eve.certificate, now));
  CHECK(known.admits(key_of(mallory), {}, now));
  here.run({"revoke", "mallory", "--moderator", here.path_of("reef")});
  std::string detail;
  const auto list = slurp(here / "reef" / "revoked.crl");
  REQUIRE(judge.admits->offer(list, detail) == netem::wire::revocation_list_news::taken);
  CHECK_FALSE(known.admits(key_of(mallory), {}, now));
  CHECK_FALSE(known.admits(key_of(mallory), mallory.certificate, now));
  CHECK(known.certificate_of(key_of(mallory), now).empty());
  CHECK(known.admits(key_of(eve), {}, now));
  CHECK(known.certificate_of(key_of(eve), now) == eve.certificate);
}

TEST_CASE("a proof becomes a revocation after it is checked") {
  const reef here;
  const auto mallory = here.admit("mallory"), eve = here.admit("eve");
  const auto proof = two_votes_of(mallory);
  auto forged = proof;
  ++std::get<actors::evidence>(forged.what).first.low;
  for (const auto& [evidence, why] : std::map<std::string, std::string>{
           {to_line(forged), "the proof does not hold: its key has not signed what it says"},
           {"bans.txt", "there is no file 'bans.txt', and it is no proof"},
           {"gossip about mallory", "a line of a proof is 'PROOF swarm HASH'"},
           {to_line(actors::proof_in_swarm{proof.what, ""}), "the proof is of a simulation"}}) {
    const auto refused = here.revoke_by(evidence);
    CHECK(refused.exit == 1);
    CHECK_MESSAGE(has(refused.err, "--evidence: " + why), refused.err);
  }
  // Another moderator's member.
  const reef other;
  const auto stranger = here.revoke_by(to_line(two_votes_of(other.admit("mallory"))));
  CHECK((stranger.exit == 1 && has(stranger.err, "was not admitted here")));
  CHECK_FALSE(has(here.keys({"show", here.path_of("reef")}).out, "revoked at"));

  spill(here / "bans.txt",
        to_line(banned_member{proof, 1'795'000'000'000'000'000, "mallory"}) + "\n");
  const auto done = here.revoke_by(here.path_of("bans.txt"));
  CHECK_MESSAGE(done.exit == 0, done.err);
  CHECK(has(done.out, "'mallory' is guilty of two votes in one round: the proof holds\n"
                      "1 certificate of 'mallory' is revoked\n"));
  CHECK(has(here.revoke_by(to_line(proof)).out, "was revoked before; nothing changed"));
  CHECK(here.keys({"revoke", "--moderator", here.path_of("reef")}).exit == 2);
  std::string detail;
  netem::wire::certified_member who;
  REQUIRE(eve.admits->offer(slurp(here / "reef" / "revoked.crl"), detail) ==
          netem::wire::revocation_list_news::taken);
  const auto now = netem::wire::utc_now();
  CHECK(eve.admits->check(mallory.certificate, now, who, detail) == netem::wire::refusal::revoked);
  CHECK(eve.admits->check(eve.certificate, now, who, detail) == netem::wire::refusal::none);
}

TEST_CASE("every honest host bans a member that votes twice, and no later round has it") {
  swarm what;
  what.peers = 5;
  what.epochs = 12;
  what.seed = 4;
  what.late = "  two: {count: 1, up: 1Mbit, down: 40Mbit, device: fast, conduct: {kind: two_votes, "
              "from: 4s}}\n";
  what.faults = {"{restart: process, select: p-1, at: 20s, downtime: 2s}"};
  const scratch_folder folder;
  runner_options options;
  options.out = (folder / "run").string();
  std::set<std::string> banned_by, culprits;
  std::int64_t last_ban = 0;
  std::set<std::string> groups_of_culprit, groups_of_others; // after the last ban
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (actors::get_if<actors::member_banned>(&seen)) {
      banned_by.insert(std::string(from.name()));
      last_ban = from.utc_ns();
      groups_of_culprit.clear();
      groups_of_others.clear();
    }
    if (const auto* proof = actors::get_if<actors::proof_taken>(&seen))
      culprits.insert(proof->name);
    if (const auto* in = actors::get_if<actors::contributed>(&seen); in && last_ban > 0)
      (from.name() == "two-0" ? groups_of_culprit : groups_of_others).insert(in->group.hex());
  };
  const auto run = run_swarm(what, std::move(options));
  CHECK(culprits == std::set<std::string>{"two-0"});
  CHECK(banned_by == std::set<std::string>{"p-0", "p-1", "p-2", "p-3", "p-4", "shard-0"});
  CHECK(groups_of_others.size() >= 3);
  for (const auto& group : groups_of_culprit) CHECK_FALSE(groups_of_others.contains(group));
  CHECK(run.summary().epochs == 12);
  CHECK(e2e::rule(run.summary(), "no_honest_accused").violated == 0);

  const auto story = explain_case(folder / "run", 1);
  REQUIRE(story.ok());
  CHECK(story->what.member == "two-0");
  CHECK(story->what.bans.size() == 6);
  CHECK(!story->what.proven.empty());
  CHECK(story->statements.size() == 2);
  const auto text = to_text(*story);
  CHECK_MESSAGE(has(text, "case 1: two-0, banned for two votes in one round"), text);
  const auto view = read_run_view(folder / "run");
  REQUIRE(view.ok());
  const auto page = nlohmann::json::parse((*view)->document());
  CHECK(page["cases"]["total"] == 1);
  CHECK(page["cases"]["rows"][0]["bans"]["count"] == 6);
}

TEST_CASE("a run without accusations has no file of cases") {
  const scratch_folder folder;
  runner_options options;
  options.out = (folder / "run").string();
  const auto run = run_swarm({}, std::move(options));
  CHECK(run.errors.empty());
  CHECK_FALSE(std::filesystem::exists(folder / "run" / cases_file));
  CHECK(has(explain_case(folder / "run", 1).error(), "no host accused another one"));
}
