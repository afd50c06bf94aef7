# SPDX-License-Identifier: Apache-2.0
# driftd_add_provider(files files.cpp …): files.so, which exports driftd_provider_v1 and nothing else. Libraries that it
# needs are added with target_link_libraries(files PRIVATE …); static ones stay hidden too.
# driftd_add_sink(driftd-sink-desk desk.cpp …): the same for a sink plugin, which exports driftd_sink_v1.
function(driftd_add_plugin name map)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(CXX IN_LIST languages)
    target_compile_features(${name} PRIVATE cxx_std_20)
  endif()
  target_link_libraries(${name} PRIVATE driftd::plugin_api)
  target_link_options(${name} PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now
                                      -Wl,--version-script=${map})
endfunction()
function(driftd_add_provider name)
  driftd_add_plugin(${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/provider.map ${ARGN})
endfunction()
function(driftd_add_sink name)
  driftd_add_plugin(${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sink.map ${ARGN})
endfunction()
