# SRPC as a package of its own, for programs that want only the RPC:
#
#   cmake --install build/release --component srpc --prefix DIR
#   find_package(srpc)  target_link_libraries(mine PRIVATE srpc::srpc)   and srpc::verbs, for RDMA
#
# Only the SRPC component is installed by CMake; `make install` installs Cairn's programs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(srpc_modules base reactor mem srpc srpc_verbs)
# Below a folder of their own, because "base/" would be too common a name in a shared one.
set(srpc_include_folder "${CMAKE_INSTALL_INCLUDEDIR}/cairn")
set(srpc_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/srpc")

# What users may include; headers that these need come along.
set(srpc_public_headers
  base/json_text.h base/log.h base/units.h base/version.h mem/copy.h reactor/deadline.h
  reactor/offload.h reactor/resolve.h reactor/signals.h reactor/stop_signals.h reactor/stream.h
  srpc/call.h srpc/call_context.h srpc/channel.h srpc/close_reason.h srpc/key_file.h srpc/key_ring.h srpc/message.h
  srpc/near_connector.h
  srpc/reactor_host.h srpc/reactor_placement.h srpc/server.h srpc/server_process.h srpc/transport.h srpc/wire.h
  srpc/inproc/hub.h srpc/inproc/local_connector.h srpc/shm/shm_connector.h srpc/shm/shm_listener.h
  srpc/tcp/tcp_connector.h srpc/tcp/tcp_listener.h srpc/tcp/tls_connector.h srpc/verbs/system_verbs.h)

# The named headers below src/, and every header they include, and so on.
function(cairn_header_closure out)
  set(waiting ${ARGN})
  set(found)
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found "${header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${header}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/src/${header}" lines REGEX "^#include \"")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND waiting "${included}")
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

cairn_header_closure(headers ${srpc_public_headers})
foreach(header ${headers})
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "src/${header}" DESTINATION "${srpc_include_folder}/${folder}" COMPONENT srpc)
endforeach()

foreach(module ${srpc_modules})
  string(REPLACE "srpc_" "" export_name "${module}")
  set_target_properties(cairn_${module} PROPERTIES EXPORT_NAME ${export_name})
  target_include_directories(cairn_${module} INTERFACE "$<INSTALL_INTERFACE:${srpc_include_folder}>")
  # Users get the language version and nothing else of our flags.
  target_compile_features(cairn_${module} INTERFACE cxx_std_23)
  install(TARGETS cairn_${module} EXPORT srpc ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT srpc)
endforeach()
install(TARGETS dep_uring dep_isal dep_ibverbs EXPORT srpc COMPONENT srpc)
install(EXPORT srpc NAMESPACE srpc:: FILE srpc-targets.cmake DESTINATION "${srpc_package_folder}" COMPONENT srpc)

set(made "${PROJECT_BINARY_DIR}/package")
configure_package_config_file(cmake/srpc-config.cmake.in "${made}/srpc-config.cmake"
  INSTALL_DESTINATION "${srpc_package_folder}")
write_basic_package_version_file("${made}/srpc-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${made}/srpc-config.cmake" "${made}/srpc-config-version.cmake" DESTINATION "${srpc_package_folder}"
  COMPONENT srpc)

install(TARGETS srpc-ping srpc-perf srpc-doctor RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT srpc)
install(FILES man/srpc-ping.1 man/srpc-perf.1 man/srpc-doctor.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT srpc)
install(FILES docs/srpc.md DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/srpc" COMPONENT srpc)
install(DIRECTORY examples/srpc/ DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/srpc/examples" COMPONENT srpc)
