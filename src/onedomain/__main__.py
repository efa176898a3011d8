from onedomain.cli import main

main()
