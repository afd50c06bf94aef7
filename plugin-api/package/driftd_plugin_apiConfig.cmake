# SPDX-License-Identifier: Apache-2.0
include(${CMAKE_CURRENT_LIST_DIR}/driftd_plugin_apiTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/driftd_add_provider.cmake)
