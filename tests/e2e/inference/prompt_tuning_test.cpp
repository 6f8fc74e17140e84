// The task 'tune_prompts': a client learns through servers that come and go, as it learns on one
// machine.
#include "scenarios/inference/inference_report.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

inference_options tuning() {
  inference_options out;
  out.task = "tune_prompts";
  out.servers = {"0:2", "2:4", "4:5", "0:1", "1:3", "3:5"};
  out.prompt = "The shoal turns as one fish. No fish leads, and each one watches its neighbours.";
  out.batch = 3;
  out.length = 16;
  out.prompt_length = 4;
  out.tokens = 20;
  return out;
}

nlohmann::json summary(const inference_options& what) {
  const auto out = run_prompt_tuning("test", what, 1, {});
  REQUIRE_MESSAGE(out.ok(), out.error());
  for (const auto& each : out->errors) FAIL_CHECK(each);
  return nlohmann::json::parse(out->summary);
}

} // namespace

TEST_CASE("prompt tuning: servers that come and go leave each loss as it is") {
  for (const bool deep : {true, false}) {
    auto what = tuning();
    what.deep_prompts = deep;
    const auto calm = summary(what);
    CHECK(calm["deaths"] == 0);
    what.lifetime = 10s;
    what.downtime = 3s;
    const auto churn = summary(what);
    CHECK(churn["deaths"] > 3);
    CHECK(churn["servers_lost_in_use"] > 0);
    CHECK(churn["losses"] == calm["losses"]);
    const auto losses = calm["losses"].get<std::vector<double>>();
    REQUIRE(losses.size() == 21);
    CHECK(losses[20] < losses[0]);
  }
}

TEST_CASE("prompt tuning: swarms that cannot learn are refused with the reason") {
  auto what = tuning();
  const auto why = [&] {
    const auto out = run_prompt_tuning("test", what, 1, {});
    return out.ok() ? std::string{} : out.error();
  };
  what.model = "timing";
  CHECK(why() == "inference: a model of sizes alone learns nothing: give inference.model");
  what = tuning();
  what.length = 200;
  CHECK(why() == "inference: the text to learn has 80 tokens: give one with more than "
                 "inference.length = 200");
  what = tuning();
  what.prompt_length = 510;
  CHECK(why() ==
        "inference: a prompt of 510 and 16 tokens are longer than the model's context of 512");
}
