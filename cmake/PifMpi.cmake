# Which MPIs are here: PIF_MPIS is a list of "mpich" and "openmpi". pif_use_mpi(TARGET MPI) compiles with its headers,
# pif_link_mpi(TARGET MPI) links its library, as its own compiler wrapper would.
set(PIF_MPIS)
foreach(mpi mpich openmpi)
  find_program(PIF_MPICC_${mpi} mpicc.${mpi})
  if(PIF_MPICC_${mpi})
    execute_process(COMMAND ${PIF_MPICC_${mpi}} -show OUTPUT_VARIABLE shown OUTPUT_STRIP_TRAILING_WHITESPACE
      RESULT_VARIABLE failed)
    if(failed)
      continue()
    endif()
    list(APPEND PIF_MPIS ${mpi})
    separate_arguments(shown)
    set(PIF_MPI_HEADERS_${mpi} ${shown})
    list(FILTER PIF_MPI_HEADERS_${mpi} INCLUDE REGEX "^-I")
    list(TRANSFORM PIF_MPI_HEADERS_${mpi} REPLACE "^-I" "")
    set(PIF_MPI_LIBRARIES_${mpi} ${shown})
    list(FILTER PIF_MPI_LIBRARIES_${mpi} INCLUDE REGEX "^-[lL]")
  endif()
endforeach()

function(pif_use_mpi target mpi)
  target_include_directories(${target} SYSTEM PRIVATE ${PIF_MPI_HEADERS_${mpi}})
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)  # C's interface alone
endfunction()
function(pif_link_mpi target mpi)
  pif_use_mpi(${target} ${mpi})
  target_link_libraries(${target} PRIVATE ${PIF_MPI_LIBRARIES_${mpi}})
endfunction()
