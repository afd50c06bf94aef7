# SPDX-License-Identifier: Apache-2.0
# Read by ctest after the tests were discovered.
foreach(list e2e_k8s_test_TESTS)
  if(${list})
    set_tests_properties(${${list}} PROPERTIES FIXTURES_REQUIRED kube)
  endif()
endforeach()
