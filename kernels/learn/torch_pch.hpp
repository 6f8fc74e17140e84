// The part of libtorch that kernels/learn uses; precompiled, private to this folder's .cpp files.
// torch/torch.h would also bring the module, data and serialization interfaces at twice the cost.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
#include <torch/csrc/autograd/variable.h>
