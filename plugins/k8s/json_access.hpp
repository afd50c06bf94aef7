// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kube/json_access.hpp"

namespace driftd::k8s {

using kube::find, kube::json, kube::list, kube::put, kube::text;

}  // namespace driftd::k8s
