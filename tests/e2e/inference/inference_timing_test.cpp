// The program 'inference' with a model of sizes alone: times follow from the formulas, and the
// reference scenarios have the published speeds.
#include "scenarios/inference/inference_report.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

double figure(const inference_options& what, const char* name) {
  const auto out = run_inference_timing("test", what, 1, {});
  REQUIRE_MESSAGE(out.ok(), out.error());
  for (const auto& each : out->errors) FAIL_CHECK(each);
  return nlohmann::json::parse(out->summary)[name].get<double>();
}

double of_one_client(const inference_options& what) {
  return figure(what, "tokens_per_second_of_a_client");
}

/// scenarios/reference/petals-steps.yaml
inference_options steps() {
  inference_options out;
  out.model = "timing";
  out.servers = {"0:24", "24:47", "47:70"};
  out.prompt = "x";
  out.tokens = 127;
  out.rate = {1e9};
  out.delay = 2500us;
  out.activations = "blockwise8";
  out.layer_time = 11450us;
  out.context_time = 1220ns;
  return out;
}

/// scenarios/reference/petals-forward.yaml
inference_options forward() {
  auto out = steps();
  out.task = "forward";
  out.tokens = 4;
  out.network = "tcp";
  out.layer_batch_time = 4900us;
  out.layer_time = 127500ns;
  out.context_time = {};
  return out;
}

} // namespace

TEST_CASE("inference timing: a step takes its computing and a round trip to each server") {
  auto what = steps();
  what.rate = {1e12};
  what.context_time = {};
  CHECK(of_one_client(what) == doctest::Approx(1 / (70 * 0.01145 + 3 * 0.005)).epsilon(1e-4));
  // Mean context while 127 tokens are written after the first one.
  what.context_time = 10us;
  CHECK(of_one_client(what) ==
        doctest::Approx(1 / (70 * (0.01145 + 64e-5) + 3 * 0.005)).epsilon(1e-3));
  // 14336 codes and four scales each way, beside less than a kilobyte of headers.
  what.rate = {10e6};
  const double bytes = 14352, before = 70 * (0.01145 + 64e-5) + 3 * 0.005;
  const double wire = (1 / of_one_client(what) - before) * 10e6 / 8 / 6;
  CHECK(wire > bytes);
  CHECK(wire < bytes + 1000);
}

TEST_CASE("inference timing: steps and passes of BLOOM-176B have the published speeds") {
  // Borzunov et al., arXiv:2209.01188, table 3. Two of the six steps/s are calibrated.
  struct row {
    std::uint64_t tokens;
    double rate;
    duration delay;
    double published;
  };
  for (const row& each :
       {row{127, 1e9, 2500us, 1.22}, row{2047, 1e9, 2500us, 1.11}, row{127, 1e8, 2500us, 1.19},
        row{2047, 1e8, 2500us, 1.08}, row{127, 1e8, 50ms, 0.89}, row{2047, 1e8, 50ms, 0.80}}) {
    auto what = steps();
    what.tokens = each.tokens;
    what.rate = {each.rate};
    what.delay = each.delay;
    CHECK(of_one_client(what) == doctest::Approx(each.published).epsilon(0.05));
  }
  for (const row& each : {row{1, 1e9, 2500us, 70.0}, row{64, 1e9, 2500us, 253.6},
                          row{1, 1e8, 2500us, 56.4}, row{64, 1e8, 2500us, 182.0}}) {
    auto what = forward();
    what.batch = each.tokens;
    what.rate = {each.rate};
    what.delay = each.delay;
    CHECK(of_one_client(what) == doctest::Approx(each.published).epsilon(0.1));
  }
}

TEST_CASE("inference timing: 1000 sessions on 20 servers reach 0.9 of the bound of the layers") {
  inference_options what;
  what.model = "timing";
  for (const char* span : {"0:14", "14:28", "28:42", "42:56", "56:70"})
    for (int i = 0; i < 4; ++i) what.servers.emplace_back(span);
  what.prompt = "x";
  what.tokens = 40;
  what.clients = 1000;
  what.rate = {1e9};
  what.delay = 10ms;
  what.route = "spread";
  what.cache = 10'000'000;
  what.activations = "blockwise8";
  // Four servers of 14 layers of a millisecond hold each layer.
  CHECK(figure(what, "bound") == doctest::Approx(4 / 0.014));
  CHECK(figure(what, "steady_tokens_per_second") > 0.9 * 4 / 0.014);
}
