#include "textflag.h"

// The offsets of Op's fields; stage_test.go holds them against unsafe.Offsetof.
#define OP_NR    0
#define OP_ARG0  8
#define OP_ARG1  16
#define OP_ARG2  24
#define OP_ARG3  32
#define OP_ARG4  40
#define OP_ARG5  48
#define OP_REFS  56
#define OP_RET   64
#define OP_WANT  72
#define OP_CHILD 80
#define OP_LEN   88
#define OP_OUT   96
#define OP_SIZE  104

#define SYS_exit_group 231
#define FAILED         127

// ARG loads one argument; where its bit in refs (BX) is set, the word that it points to.
#define ARG(i, off, reg) \
	MOVQ off(R12), reg \
	BTQ  $i, BX        \
	JCC  2(PC)         \
	MOVQ (reg), reg

// func walk(ops *Op, n uintptr, after *Op, m uintptr)
//
// Registers only: a child made by CLONE_VM runs on its parent's stack pointer and must not write to that stack.
//	R12 the op   R13 how many are left   R15 0 in the caller, 1 in a child, 2 in the caller's after-part
TEXT ·walk(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ ops+0(FP), R12
	MOVQ n+8(FP), R13
	XORQ R15, R15

loop:
	TESTQ R13, R13
	JEQ   end
	MOVQ  OP_REFS(R12), BX
	ARG(0, OP_ARG0, DI)
	ARG(1, OP_ARG1, SI)
	ARG(2, OP_ARG2, DX)
	ARG(3, OP_ARG3, R10)
	ARG(4, OP_ARG4, R8)
	ARG(5, OP_ARG5, R9)
	MOVQ  OP_NR(R12), AX
	SYSCALL

	// A clone op's child leaves for its own ops. It must not store the 0: the caller stores the pid in the same word.
	MOVQ  OP_CHILD(R12), BX
	TESTQ BX, BX
	JEQ   store
	TESTQ AX, AX
	JNE   store
	MOVQ  OP_LEN(R12), R13
	MOVQ  BX, R12
	MOVQ  $1, R15
	JMP   loop

store:
	MOVQ  AX, OP_RET(R12)
	MOVQ  OP_OUT(R12), BX
	TESTQ BX, BX
	JEQ   2(PC)
	MOVQ  AX, (BX)
	CMPQ AX, OP_WANT(R12)
	JLT  fail

next:
	ADDQ $OP_SIZE, R12
	DECQ R13
	JMP  loop

fail:
	CMPQ R15, $1
	JLT  after     // the caller gives up its first part
	JGT  next      // and never its after-part
	MOVQ $FAILED, DI
	JMP  exit

end:
	CMPQ R15, $1
	JLT  after
	JGT  done
	XORQ DI, DI

exit:
	MOVQ $SYS_exit_group, AX
	SYSCALL
	INT  $3

after:
	MOVQ after+16(FP), R12
	MOVQ m+24(FP), R13
	MOVQ $2, R15
	JMP  loop

done:
	RET
