// Passes through servers, forward and backward, with prompts. The results are those of the model on
// one machine, for each cut of the layers and with a death at each point.
#include "actors/inference/pass_client.hpp"
#include "actors/inference/probes.hpp"
#include "tests/actors/inference/inference_lab.hpp"

#include <cmath>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t width = 8, layers = 5, samples = 3, length = 4, prompt = 2;

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  std::vector<float> out(count);
  auto random = stream(seed, "values");
  for (auto& each : out) each = static_cast<float>(random.normal());
  return out;
}

struct pass_results {
  std::vector<float> output, gradient, prompts;
};

/// The same on one machine.
pass_results alone(const shared_model& model, const std::vector<float>& input,
                   const std::vector<float>& added, const std::vector<float>& slopes) {
  pass_results out{input, slopes, std::vector<float>(added.size())};
  std::vector<std::vector<float>> entered;
  const learn::pass_shape shape{samples, length};
  for (std::size_t l = 0; l < layers; ++l) {
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t i = 0; i < prompt * width; ++i)
        out.output[s * length * width + i] += added[l * prompt * width + i];
    entered.push_back(out.output);
    out.output = model.layers[l]->forward(shape, out.output).value();
  }
  for (std::size_t l = layers; l-- > 0;) {
    out.gradient = model.layers[l]->backward(shape, entered[l], out.gradient).value();
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t i = 0; i < prompt * width; ++i)
        out.prompts[l * prompt * width + i] += out.gradient[s * length * width + i];
  }
  return out;
}

struct pass_lab : inference_lab {
  explicit pass_lab(const shared_model& model, std::size_t piece_tokens = 1024)
      : inference_lab(model) {
    auto& host = world.add_host("tuner");
    pass_client_config config;
    config.model = "m";
    config.layers = layers;
    config.width = width;
    config.piece_tokens = piece_tokens;
    config.dht = directory_actor();
    client = world.spawn<pass_client>(host, std::move(config));
    log = std::make_shared<collector<layers_done>::log>();
    reader = world.spawn<collector<layers_done>>(host, log);
  }
  std::vector<layers_done>& answers() { return std::get<0>(*log); }
  const layers_done& wait() {
    const auto before = answers().size();
    for (int i = 0; i < 2000 && answers().size() == before; ++i) world.run_for(100ms);
    REQUIRE(answers().size() > before);
    return answers().back();
  }
  layers_forward request(const std::vector<float>& input, const std::vector<float>& added) {
    layers_forward m;
    m.reply_to = reader;
    m.token = ++token;
    m.last = layers;
    m.samples = samples;
    m.time = length;
    m.activations = payload{input};
    m.prompt_length = prompt;
    m.prompts = payload{added};
    m.adapter = adapter;
    return m;
  }
  pass_results run(const std::vector<float>& input, const std::vector<float>& added,
                   const std::vector<float>& slopes) {
    const auto floats = [](const payload& from) {
      const auto all = from.floats();
      return std::vector<float>(all.begin(), all.end());
    };
    world.send(client, request(input, added));
    pass_results out;
    const auto forward = wait();
    CHECK(forward.why == "");
    out.output = floats(forward.activations);
    world.send(client, layers_backward{token, payload{slopes}});
    const auto backward = wait();
    CHECK(backward.why == "");
    out.gradient = floats(backward.activations);
    out.prompts = floats(backward.prompts);
    return out;
  }

  caf::actor client, reader;
  std::shared_ptr<collector<layers_done>::log> log;
  std::uint64_t token = 0;
  std::string adapter;
};

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])) /
                              (1 + std::abs(static_cast<double>(b[i]))));
  CHECK(most < 1e-5);
}

} // namespace

TEST_CASE("pass client: each cut of the layers has the gradients of the model on one machine") {
  const auto model = random_model();
  const auto input = drawn(samples * length * width, 1), slopes = drawn(input.size(), 2),
             added = drawn(layers * prompt * width, 3);
  const auto expected = alone(model, input, added, slopes);
  for (unsigned cuts = 0; cuts < 16; ++cuts)
    for (const std::size_t piece_tokens : {1024, 4}) {
      pass_lab lab(model, piece_tokens);
      std::uint32_t first = 0;
      for (std::uint32_t i = 1; i <= layers; ++i)
        if (i == layers || ((cuts >> (i - 1)) & 1U) != 0) {
          lab.add_server({first, i});
          first = i;
        }
      lab.world.settle();
      const auto got = lab.run(input, added, slopes);
      CHECK(got.output == expected.output);
      CHECK(got.gradient == expected.gradient);
      check_close(got.prompts, expected.prompts);
    }
}

TEST_CASE("pass client: a death at any point of a pass leaves its gradients as they are") {
  const auto model = random_model();
  const auto input = drawn(samples * length * width, 1), slopes = drawn(input.size(), 2),
             added = drawn(layers * prompt * width, 3);
  const auto expected = alone(model, input, added, slopes);
  std::size_t runs = 0, lost = 0;
  for (const auto point : inference_probes::all)
    for (std::uint64_t at = 1;; ++at) {
      pass_lab lab(model, 4);
      for (const layer_span each :
           {layer_span{0, 2}, {2, 5}, {0, 3}, {3, 5}, {0, 1}, {1, 4}, {4, 5}})
        lab.add_server(each);
      lab.world.settle();
      std::uint64_t count = 0;
      bool died = false;
      lab.world.on_probe = [&](mini_host& host, std::string_view reached) {
        if (reached != point || ++count != at) return;
        died = true;
        host.kill();
      };
      const auto got = lab.run(input, added, slopes);
      lab.world.on_probe = nullptr;
      CHECK(got.output == expected.output);
      CHECK(got.gradient == expected.gradient);
      check_close(got.prompts, expected.prompts);
      if (!died) break;
      ++runs;
      lost += lab.seen<span_lost>() > 0 ? 1 : 0;
    }
  MESSAGE(runs, " deaths, ", lost, " of a server in use");
  CHECK(lost > runs / 3);
}

TEST_CASE("pass client: an adapter at the servers has the gradients of its own weights") {
  const auto plain = random_model(), adapted = random_model(3);
  const auto input = drawn(samples * length * width, 1), slopes = drawn(input.size(), 2),
             added = drawn(layers * prompt * width, 3);
  pass_lab lab(plain);
  // Only some servers have the adapter. The others refuse, and the client goes on without them.
  for (const layer_span each : {layer_span{0, 2}, {2, 5}}) {
    lab.add_server(each);
    lab.add_server(each, {}, &adapted);
  }
  lab.world.settle();
  lab.adapter = "adapter";
  for (int i = 0; i < 3; ++i) {
    const auto expected = alone(adapted, input, added, slopes);
    const auto got = lab.run(input, added, slopes);
    CHECK(got.output == expected.output);
    CHECK(got.gradient == expected.gradient);
    check_close(got.prompts, expected.prompts);
  }
  lab.adapter = "";
  CHECK(lab.run(input, added, slopes).output == alone(plain, input, added, slopes).output);
}

TEST_CASE("pass client: a request that does not fit is answered with the reason") {
  const auto model = random_model();
  pass_lab lab(model);
  lab.add_server({0, 5});
  lab.world.settle();
  const auto input = drawn(samples * length * width, 1), added = drawn(layers * prompt * width, 3);
  const auto why = [&](layers_forward m) {
    lab.world.send(lab.client, std::move(m));
    return lab.wait().why;
  };
  auto m = lab.request(input, added);
  m.last = 6;
  CHECK(why(m) == "no layers 0:6: the model has 0:5");
  m = lab.request(input, added);
  m.time = 5;
  CHECK(why(m) == "96 activations for 3 sequences of 5 tokens of width 8");
  m = lab.request(input, added);
  m.prompt_length = 3;
  CHECK(why(m) == "80 values of prompts for 5 layers and 3 of 4 tokens");
  auto bad = input;
  bad[3] = std::nanf("");
  CHECK(why(lab.request(bad, added)) == "a value of the activations or prompts is not finite");
  lab.world.send(lab.client, lab.request(input, added));
  CHECK(lab.wait().why == "");
  lab.world.send(lab.client, layers_backward{lab.token, payload{std::vector<float>(3)}});
  CHECK(lab.wait().why == "a gradient of another size than the output, or before it");
}
