// kernels/memory_estimate: the seeds' table, figure by figure, and the parts of Shoal's own
// estimate against the sizes of real models and states.
#include "kernels/layout.hpp"
#include "kernels/memory_estimate.hpp"
#include "kernels/optimizer.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <string>

using namespace shoal;
using namespace shoal::kernels;

namespace {

struct published {
  const char* model;
  const char *parameters, *adam, *checkpointing, *eight_bits, *both, *offload, *sharing;
};

/// The output of the seeds' program: millions of parameters, and GiB of GPU memory; with offload
/// GPU/RAM and milliseconds. Mixed precision, batch 1. The last two rows have 8 bits and
/// checkpointing, the last one also one group of layers.
constexpr published table[] = {
    {"bert-base", "108.4", "2.39", "1.68", "1.78", "1.08", "0.67/0.40, 34", "0.24/0.11"},
    {"bert-large", "333.3", "6.87", "5.05", "5.00", "3.19", "1.95/1.24, 103", "0.33/0.16"},
    {"t5-3b", "1844.9", "34.61", "27.60", "24.30", "17.29", "10.42/6.87, 573", "0.51/0.26"},
    {"t5-11b", "6676.7", "120.11", "99.60", "82.80", "62.29", "37.42/24.87, 2073", "1.07/0.64"},
    {"gpt2-s", "123.5", "3.64", "2.05", "2.95", "1.36", "0.90/0.46, 38", "0.47/0.17"},
    {"gpt2-m", "353.5", "9.50", "5.51", "7.52", "3.54", "2.22/1.32, 110", "0.60/0.24"},
    {"gpt2-l", "772.2", "19.00", "11.79", "14.69", "7.48", "4.60/2.88, 240", "0.76/0.31"},
    {"gpt2-xl", "1555.0", "35.18", "23.52", "26.49", "14.83", "9.04/5.79, 483", "0.97/0.41"},
    {"gpt3-s", "123.5", "6.14", "2.27", "5.45", "1.58", "1.12/0.46, 38", "0.68/0.17"},
    {"gpt3-m", "353.5", "15.13", "5.76", "13.16", "3.78", "2.46/1.32, 110", "0.85/0.24"},
    {"gpt3-l", "756.7", "24.47", "11.82", "20.25", "7.59", "4.77/2.82, 235", "1.13/0.39"},
    {"gpt3-xl", "2016.2", "49.91", "30.69", "38.64", "19.42", "11.91/7.51, 626", "1.81/0.77"},
    {"gpt3-3b", "2645.3", "65.77", "40.14", "50.99", "25.36", "15.51/9.85, 821", "1.88/0.77"},
    {"gpt3-7b", "6648.4", "138.75", "100.00", "101.60", "62.85", "38.08/24.77, 2064", "3.21/1.52"},
    {"gpt3-13b", "12840.4", "251.94", "192.56", "180.18", "120.81", "72.97/47.83, 3986",
     "4.42/2.13"},
    {"gpt3-175b", "174564.9", "2932.49", "2606.24", "1957.04", "1630.79", "980.48/650.31, 54192",
     "18.60/9.05"},
    {"gpt-j-6b", "5843.7", "121.85", "87.95", "89.20", "55.29", "33.52/21.77, 1814", "3.15/1.52"},
    {"dalle-12b", "12190.0", "227.71", "182.40", "159.59", "114.28", "68.87/45.41, 3784",
     "2.35/1.07"},
};

constexpr double gib = 1073741824;

template <class... Values>
std::string text(const char* format, Values... values) {
  char out[128];
  std::snprintf(out, sizeof(out), format, values...);
  return out;
}

memory_choices of(const std::string& model) {
  for (const auto& shape : memory_models())
    if (shape.name == model) return {.shape = shape};
  FAIL("no model " << model);
  return {};
}

std::string gpu(const memory_choices& choices) {
  return text("%.2f", figure(estimate_memory(seeds_memory(), choices), "gpu") / gib);
}

} // namespace

TEST_CASE("the seeds' calculator gives what it published for its 18 models") {
  REQUIRE(std::size(table) == memory_models().size());
  for (const auto& row : table) {
    CAPTURE(row.model);
    auto choices = of(row.model);
    CHECK(text("%.1f", figure(estimate_memory(seeds_memory(), choices), "parameters") / 1e6) ==
          row.parameters);
    CHECK(gpu(choices) == row.adam);
    choices.checkpointing = true;
    CHECK(gpu(choices) == row.checkpointing);
    choices.optimizer = "adam-8bit";
    CHECK(gpu(choices) == row.both);
    choices.checkpointing = false;
    CHECK(gpu(choices) == row.eight_bits);
    choices.checkpointing = choices.offload = true;
    auto figures = estimate_memory(seeds_memory(), choices);
    CHECK(text("%.2f/%.2f, %.0f", figure(figures, "gpu") / gib, figure(figures, "ram") / gib,
               1000 * figure(figures, "transfer")) == row.offload);
    choices.sharing = 1;
    figures = estimate_memory(seeds_memory(), choices);
    CHECK(text("%.2f/%.2f", figure(figures, "gpu") / gib, figure(figures, "ram") / gib) ==
          row.sharing);
  }
}

TEST_CASE("the seeds' calculator gives the parts that it published") {
  auto large = of("gpt2-l");
  large.checkpointing = true;
  const auto parts = estimate_memory(seeds_memory(), large);
  CHECK(text("%.4f %.4f %.4f %.4f %.4f", figure(parts, "weights") / gib,
             figure(parts, "activations") / gib, figure(parts, "optimizer") / gib,
             figure(parts, "gradients") / gib,
             figure(parts, "gpu") / gib) == "4.3148 0.2869 5.7531 1.4383 11.7931");
  auto shared = of("dalle-12b");
  shared.optimizer = "adam-8bit";
  shared.checkpointing = shared.offload = true;
  shared.sharing = 4;
  const auto figures = estimate_memory(seeds_memory(), shared);
  CHECK(text("%.3f %.3f %.1f", figure(figures, "gpu") / gib, figure(figures, "ram") / gib,
             figure(figures, "parameters") / 1e6) == "5.519 3.179 853.3");
}

TEST_CASE("the seeds' calculator divides by GPUs what a stage of ZeRO divides") {
  auto choices = of("gpt2-l");
  const auto whole = estimate_memory(seeds_memory(), choices);
  choices.gpus = 4;
  const char* divided[] = {"", "optimizer", "gradients", "weights"};
  const double moved[] = {0, 8, 8 + 2, 8 + 2 + 6};
  for (choices.zero = 0; choices.zero <= 3; ++choices.zero) {
    const auto figures = estimate_memory(seeds_memory(), choices);
    for (int stage = 1; stage <= 3; ++stage)
      CHECK(figure(figures, divided[stage]) ==
            figure(whole, divided[stage]) / (stage <= choices.zero ? 4 : 1));
    CHECK(figure(figures, "transfer") ==
          doctest::Approx(moved[choices.zero] * figure(whole, "parameters") / 25 / gib));
  }
  choices.zero = 1;
  choices.offload = true;
  const auto offloaded = estimate_memory(seeds_memory(), choices);
  CHECK(figure(offloaded, "transfer") == doctest::Approx(figure(offloaded, "ram") / gib / 6));
}

TEST_CASE("meaningless choices are refused with the valid ones") {
  const auto good = of("gpt2-s");
  CHECK(validate(good).ok());
  const auto refused = [&](auto change) {
    auto choices = good;
    change(choices);
    const auto valid = validate(choices);
    return valid.ok() ? std::string("nothing") : valid.error();
  };
  CHECK(refused([](auto& c) { c.shape.layers = 0; }) ==
        "layers is 0; it must be from 1 to 1099511627776");
  CHECK(refused([](auto& c) { c.sharing = 13; }) == "sharing is 13; it must be from 0 to 12");
  CHECK(refused([](auto& c) { c.zero = 4; }) == "zero is 4; it must be from 0 to 3");
  CHECK(refused([](auto& c) { c.optimizer = "adam9"; }) == "there is no optimizer 'adam9'");
  CHECK(refused([](auto& c) { c.precision = "f8"; }) == "there is no precision 'f8'");
}

TEST_CASE(
    "Shoal's own estimate counts the parameters and the state of real models and optimizers") {
  for (const auto& config :
       {transformer_config{.layers = 2, .heads = 4, .dim = 64, .context = 64},
        transformer_config{.layers = 5, .heads = 3, .dim = 96, .context = 17}}) {
    memory_choices choices{.shape = {"ours", config.layers, config.heads, config.dim,
                                     4 * config.dim, config.context, config.vocabulary}};
    choices.precision = "f32";
    const auto count = parameter_count(config);
    const std::pair<const char*, optimizer_config> optimizers[] = {
        {"adam", {.kind = optimizer_kind::adamw}},
        {"adam", {.kind = optimizer_kind::lamb}},
        {"adam-8bit", {.kind = optimizer_kind::adamw8}},
        {"adam-8bit", {.kind = optimizer_kind::lamb8}},
        {"sgd", {.kind = optimizer_kind::sgd}},
        {"sgd-momentum", {.kind = optimizer_kind::sgd, .momentum = 0.9}}};
    for (const auto& [name, optimizer] : optimizers) {
      CAPTURE(name);
      choices.optimizer = name;
      const auto figures = estimate_memory(shoal_memory(), choices);
      CHECK(figure(figures, "parameters") == static_cast<double>(count));
      CHECK(figure(figures, "optimizer") == static_cast<double>(state_bytes(optimizer, count)));
    }
  }
}

TEST_CASE("each choice that should save memory saves the stated amount") {
  auto choices = of("gpt2-m");
  const auto estimate = [&] { return estimate_memory(shoal_memory(), choices); };
  const auto before = estimate();
  choices.checkpointing = true;
  CHECK(figure(estimate(), "backward_pass") < 0.5 * figure(before, "backward_pass"));
  choices = of("gpt2-m");
  choices.offload = true;
  const auto offloaded = estimate();
  CHECK(figure(offloaded, "gpu") ==
        figure(offloaded, "weights") + figure(offloaded, "backward_pass"));
  CHECK(figure(offloaded, "gpu") + figure(offloaded, "ram") == figure(before, "gpu"));
  choices = of("gpt2-m");
  choices.sharing = 24;
  CHECK(figure(estimate(), "gpu") == figure(before, "gpu"));
  choices.sharing = 1;
  CHECK(figure(estimate(), "layer_parameters") == figure(before, "layer_parameters"));
  CHECK(figure(estimate(), "parameters") ==
        figure(before, "parameters") - 23 * figure(before, "layer_parameters"));
  choices = of("gpt2-m");
  choices.swarm = true;
  CHECK(figure(estimate(), "gpu") == figure(before, "gpu"));
  CHECK(figure(before, "ram") == 0);
  // There are 8 states of 12 bytes and the next one, 8 gradients, the two means and the sum of all
  // jobs. One state is counted already.
  CHECK(figure(estimate(), "ram") == (8 * 12 + 8 * 4 + 2 * 4 + 8) * figure(before, "parameters"));
}
