    .section .rodata
    .balign 16
    .globl stitchkitLaunchHelperBegin
    .hidden stitchkitLaunchHelperBegin
    .globl stitchkitLaunchHelperEnd
    .hidden stitchkitLaunchHelperEnd
stitchkitLaunchHelperBegin:
    .incbin LAUNCH_HELPER_FILE
stitchkitLaunchHelperEnd:
    .section .note.GNU-stack, "", %progbits
