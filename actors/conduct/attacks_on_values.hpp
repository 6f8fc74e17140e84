// Attacks on the numbers of training: wrong labels, old gradients, and values that colluding
// attackers compute from the contributions that they know.
// Sources: Gorbunov et al., "Secure Distributed Training at Scale", arXiv:2106.11257, section 4.1;
// Xie et al., "Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation", UAI
// 2019, arXiv:1903.03936; Baruch et al., "A Little Is Enough: Circumventing Defenses For
// Distributed Learning", NeurIPS 2019, arXiv:1902.06156.
#pragma once

#include "actors/conduct/attacks.hpp"
#include "actors/conduct/collusion.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace shoal::actors {

/// Gradients of samples with wrong labels (workload::mislabelled). A workload without labels is
/// learnt honestly.
class flipped_labels final : public attack {
public:
  using attack::attack;
  const workload& learns_by(const workload& honest, std::uint64_t epoch) override;

private:
  std::map<const workload*, std::shared_ptr<const workload>> wrong_; // by honest workload
};

/// The contribution of `strength` epochs ago. Until there is one, the oldest.
class delayed_gradients final : public attack {
public:
  using attack::attack;
  void contribute(payload& values, const round_request& request) override;

private:
  // By size and epoch.
  std::map<std::pair<std::size_t, std::uint64_t>, std::vector<float>> earlier_;
};

/// An attack by attackers that collude.
class joint_attack : public attack {
public:
  joint_attack(host& on, const conduct_options& how);
  void contribute(payload& values, const round_request& request) final;

protected:
  /// The values that all attackers send, of a group of `members` with `attackers` of them.
  virtual std::vector<float> plan(const known_contributions& from, std::size_t members,
                                  std::size_t attackers) const = 0;

private:
  const std::shared_ptr<collusion> with_;
};

/// -strength * mean
class inner_product_manipulation final : public joint_attack {
public:
  using joint_attack::joint_attack;

private:
  std::vector<float> plan(const known_contributions& from, std::size_t members,
                          std::size_t attackers) const override;
};

/// mean - strength z deviation, with z of alie_deviations().
class little_is_enough final : public joint_attack {
public:
  using joint_attack::joint_attack;

private:
  std::vector<float> plan(const known_contributions& from, std::size_t members,
                          std::size_t attackers) const override;
};

/// The deviations from the mean at which `attackers` of `members` still have enough honest members
/// farther away than they are to pass as a majority:
///   z = Phi^-1((n - b - s) / (n - b)),  s = floor(n / 2 + 1) - b
/// 0 if the attackers are a majority, or too few for a positive z. Source: Baruch et al., algorithm
/// 3.
double alie_deviations(std::size_t members, std::size_t attackers);

/// An honest host whose contributions the attackers know.
class watched_host final : public conduct {
public:
  watched_host(host& on, std::vector<std::shared_ptr<collusion>> by)
      : on_(on), by_(std::move(by)) {}
  void contribute(payload& values, const round_request& request) override;

private:
  host& on_;
  std::vector<std::shared_ptr<collusion>> by_;
};

} // namespace shoal::actors
