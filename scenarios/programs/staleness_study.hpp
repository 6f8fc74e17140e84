// The options of the program 'staleness_study', which are the section `staleness_study` of a
// scenario file. Trainers with stale gradients train a mixture of experts and a dense network
// (scenarios/experts/stale_mixture.hpp). scenarios/schema/describe.hpp explains describe().
#pragma once

#include "scenarios/schema/rule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct staleness_study {
  std::string images, labels; ///< required
  std::uint64_t size = 784;
  std::uint64_t classes = 10;
  std::vector<std::string> models{"mixture", "dense"};
  std::vector<double> failures{0.0};
  std::uint64_t trainers = 64;
  std::uint64_t batch = 4;
  std::uint64_t updates = 20480;
  std::uint64_t evaluate_every = 1024;
  std::uint64_t layers = 4;
  std::uint64_t experts = 64;
  std::uint64_t chosen = 4;
  std::uint64_t width = 64;
  std::uint64_t dense_width = 0; ///< 0: the width with the computing of `chosen` experts
  double learning_rate = 1e-3;
  double balance = 0;
  bool operator==(const staleness_study&) const = default;
};

template <class V>
void describe(V& v, staleness_study& o) {
  v.field("images", o.images,
          "IDX file of the images, such as MNIST's `t10k-images-idx3-ubyte`, plain or with the "
          "ending `.gz`. A relative path begins where the program runs. A tenth is held out",
          {.required = true});
  v.field("labels", o.labels, "IDX file of the labels", {.required = true});
  v.field("size", o.size, "bytes of an image", {.at_least = 1, .at_most = 1 << 20});
  v.field("classes", o.classes, "number of labels", {.at_least = 2, .at_most = 256});
  v.field("models", o.models,
          "`mixture`: layers of experts behind gates. `dense`: each layer is one block, and all "
          "gradients are stale",
          {.one_of = "mixture, dense"});
  v.field("failures", o.failures,
          "probabilities that an expert does not answer for a sample; each is a run of `mixture`",
          {.at_least = 0, .below = 1, .fraction = true});
  v.field("trainers", o.trainers, "how many share the parameters; each waits an exponential time",
          {.at_least = 1, .at_most = 4096});
  v.field("batch", o.batch, "samples of a gradient", {.at_least = 1, .at_most = 4096});
  v.field("updates", o.updates, "steps of all trainers together", {.at_least = 1, .at_most = 1e9});
  v.field("evaluate_every", o.evaluate_every, "updates between two measurements",
          {.at_least = 1, .at_most = 1e9});
  v.field("layers", o.layers, "layers of experts, or of blocks", {.at_least = 1, .at_most = 64});
  v.field("experts", o.experts, "experts of each layer", {.at_least = 2, .at_most = 65536});
  v.field("chosen", o.chosen, "experts that a sample gets in each layer",
          {.at_least = 1, .at_most = 1024});
  v.field("width", o.width, "values of a sample between two layers of the mixture",
          {.at_least = 1, .at_most = 4096});
  v.field("dense_width", o.dense_width,
          "the same in the dense network; 0: as much computing as `chosen` experts",
          {.at_most = 16384});
  v.field("learning_rate", o.learning_rate, "the rate of Adam (AMSGrad)",
          {.above = 0, .at_most = 10});
  v.field("balance", o.balance, "factor of the gates' balance loss; 0: none",
          {.at_least = 0, .at_most = 1000});
}

} // namespace shoal::scenarios
