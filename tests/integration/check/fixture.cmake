# SPDX-License-Identifier: Apache-2.0
# Read by ctest after the tests were discovered.
foreach(list integration_check_test_TESTS)
  if(${list})
    set_tests_properties(${${list}} PROPERTIES FIXTURES_REQUIRED kube)
  endif()
endforeach()
