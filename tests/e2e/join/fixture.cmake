# SPDX-License-Identifier: Apache-2.0
# Read by ctest after the tests were discovered.
foreach(list e2e_join_test_TESTS)
  if(${list})
    set_tests_properties(${${list}} PROPERTIES FIXTURES_REQUIRED "kube;kafka-4.0.0")
  endif()
endforeach()
