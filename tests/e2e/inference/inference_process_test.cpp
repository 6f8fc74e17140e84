// scenarios/inference/inference_process: texts of one process, with servers in the process.
#include "kernels/base/rng.hpp"
#include "scenarios/inference/inference_process.hpp"
#include "scenarios/inference/inference_swarm.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

using text = std::vector<learn::token_id>;

/// Texts under way. A test waits for the end of all of them.
class texts {
public:
  explicit texts(inference_process& by) : by_(by) {}
  /// Returns the place of the text in all().
  std::size_t begin(writing what) {
    std::size_t i = 0;
    {
      std::lock_guard guard(guard_);
      i = all_.size();
      all_.emplace_back();
      why_.emplace_back();
      ++open_;
    }
    what.on_token = [this, i](learn::token_id token) {
      std::lock_guard guard(guard_);
      all_[i].push_back(token);
    };
    what.on_end = [this, i](const std::string& why) {
      std::lock_guard guard(guard_);
      why_[i] = why;
      --open_;
      changed_.notify_all();
    };
    by_.write(std::move(what));
    return i;
  }
  const std::vector<text>& wait() {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return open_ == 0; });
    return all_;
  }
  const std::string& why(std::size_t i) const { return why_[i]; }

private:
  inference_process& by_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<text> all_;
  std::vector<std::string> why_;
  std::size_t open_ = 0;
};

std::unique_ptr<inference_process> alone(std::shared_ptr<const learn::served_model> model) {
  inference_process_options options;
  options.model = std::move(model);
  options.servers = {{0, 1}, {1, 3}, {3, 5}};
  auto out = inference_process::start(std::move(options));
  REQUIRE_MESSAGE(out.ok(), out.error());
  return std::move(*out);
}

} // namespace

TEST_CASE("inference process: many texts at once are those that the model writes alone") {
  const auto model = std::make_shared<learn::served_model>(learn::random_served_model(5, 1));
  const auto process = alone(model);
  texts all(*process);
  const auto order = [&](std::uint64_t seed) {
    writing what;
    what.prompt = model->encode("text " + std::to_string(seed));
    what.tokens = 30;
    what.sampling = {.temperature = 1};
    what.seed = seed;
    return what;
  };
  for (std::uint64_t seed = 0; seed < 12; ++seed) all.begin(order(seed));
  // A text that ends early takes nothing from the others.
  process->cancel(process->write(order(99)));
  const auto& done = all.wait();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const auto what = order(seed);
    CHECK(done[seed] ==
          write_alone(*model, what.prompt, what.tokens, what.sampling, seed, request_of(0)));
    CHECK(all.why(seed).empty());
  }
  CHECK(process->writes() == 0);
  auto wrong = order(0);
  wrong.tokens = 10'000;
  const auto i = all.begin(std::move(wrong));
  all.wait();
  CHECK(all.why(i).find("more than the model's context of") != std::string::npos);
}

TEST_CASE("inference process: the published text comes from three servers of one process") {
  SHOAL_NEEDS_DATA(file, "stories260K/stories260K.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  auto model = learn::load_served_model(file, {});
  REQUIRE_MESSAGE(model.ok(), model.error());
  const auto process = alone(std::make_shared<learn::served_model>(std::move(*model)));
  texts all(*process);
  writing what;
  what.prompt = {1};
  what.tokens = 200;
  all.begin(what);
  const auto ids = test::published(fixture)["greedy_ids"].get<text>();
  CHECK(all.wait().front() == text(ids.begin() + 1, ids.end()));
}

TEST_CASE("inference process: its layers have the outputs and gradients of one machine") {
  const auto model = std::make_shared<learn::served_model>(learn::random_served_model(5, 1));
  std::shared_ptr<learn::remote_layers> layers;
  {
    const auto process = alone(model);
    layers = process->layers();
    const learn::layer_range range{1, 4};
    const learn::pass_shape shape{2, 3};
    std::vector<float> x(shape.tokens() * layers->width()), slopes(x.size());
    auto random = stream(1, "values");
    for (auto* each : {&x, &slopes})
      for (auto& v : *each) v = static_cast<float>(random.normal());
    const auto block =
        model->model->block(range, model->part(model->model->block_tensors(range).value())).value();
    const auto made = layers->forward(range, shape, x, {});
    REQUIRE_MESSAGE(made.ok(), made.error());
    CHECK(made->values == block->forward(shape, x).value());
    const auto back = layers->backward(made->pass, slopes);
    REQUIRE_MESSAGE(back.ok(), back.error());
    CHECK(back->activations == block->backward(shape, x, slopes).value());
    CHECK(layers->backward(made->pass, slopes).error() == "there is no pass 1");
  }
  CHECK(layers->forward({0, 5}, {1, 1}, std::vector<float>(32), {}).error() ==
        "the process has ended");
}

TEST_CASE("inference process: with checks no token of a wrong server is told") {
  const auto model = std::make_shared<learn::served_model>(learn::random_served_model(5, 1));
  for (const double share : {0.01, 0.2, 1.0}) {
    CAPTURE(share);
    inference_process_options options;
    options.model = model;
    // The fastest route has one hop, and honest servers have two opinions of its layers.
    options.servers = {{0, 5}, {0, 3}, {0, 3}, {3, 5}, {3, 5}};
    options.conducts = {{0, "wrong_layers"}};
    options.check = share;
    std::mutex guard;
    std::vector<std::string> news;
    options.on_news = [&](const inference_news& what) {
      std::lock_guard lock(guard);
      if (what.what == inference_news::kind::checked) news.push_back(what.text);
    };
    auto process = inference_process::start(std::move(options));
    REQUIRE_MESSAGE(process.ok(), process.error());
    texts all(**process);
    writing what;
    what.prompt = model->encode("a text");
    what.tokens = 60;
    what.sampling = {.temperature = 1};
    // Two honest opinions need the records of all servers, which come soon after the start.
    const auto all_are_known = [&] {
      std::lock_guard lock(guard);
      return std::any_of(news.begin(), news.end(), [](const std::string& each) {
        return each.starts_with("server-0 computes wrongly: ");
      });
    };
    std::size_t before = 0;
    for (; !all_are_known(); ++before) {
      REQUIRE(before < 100);
      all.begin(what);
      all.wait();
    }
    news.clear();
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      what.seed = seed;
      all.begin(what);
    }
    const auto& done = all.wait();
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      CHECK(all.why(before + seed) == "");
      CHECK(done[before + seed] ==
            write_alone(*model, what.prompt, what.tokens, what.sampling, seed, request_of(0)));
    }
    process->reset();
    CHECK(!news.empty());
    for (const auto& each : news)
      CHECK_MESSAGE(each.starts_with("server-0 computes wrongly: "), each);
  }
}

TEST_CASE("inference process: layers that the model lacks are refused") {
  inference_process_options options;
  options.model = std::make_shared<learn::served_model>(learn::random_served_model(5, 1));
  options.servers = {{3, 6}};
  CHECK(inference_process::start(std::move(options)).error() ==
        "there are no layers 3:6: the model has the layers 0:5");
}
